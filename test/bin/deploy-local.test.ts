/** What `npm run deploy:local` says where it cannot deploy. That it deploys, test/deploy shows. */
import { freePort, run } from '../deploy/mini-stack.ts'

test('where nothing listens, it says so and how to start either emulator, and asks no other service', async () => {
  const endpoint = `http://127.0.0.1:${await freePort()}`
  const { code, output } = await run(process.execPath, ['bin/deploy-local.ts'], { AWS_ENDPOINT_URL: endpoint })
  expect(code).toBe(1)
  expect(output).toContain(`Nothing answers on ${endpoint}`)
  expect(output).toContain('.ci/ministack start')
  expect(output).toContain('localstack start')
  expect(output).not.toMatch(/^\s+at /m)
})
