export {
  type PoolInvocation,
  startWorkerPool,
  type WorkerEvent,
  type WorkerPool,
  type WorkerPoolOptions,
  type WorkerStatus,
} from './pool.ts'
