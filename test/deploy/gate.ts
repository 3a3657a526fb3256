/** Deployments take a minute and services of their own, so plain `npm test` leaves them out, and says so. */
const isAsked = process.env.MILLRACE_TEST_DEPLOY !== undefined

if (!isAsked) console.warn('SKIPPED: the deployment test. Run it with: npm run test:deploy')

/** As `describe`, where the deployment test was asked for: `.ci/test-deploy` says so, by the folder of what it has made for it. */
export const describeDeployed = isAsked ? describe : describe.skip
