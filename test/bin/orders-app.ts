/** Where the application "orders-app" stands in a project. */
export const topologyFile = 'functions/orders/topology.ts'
export const handlerFile = 'functions/orders/handler.ts'
