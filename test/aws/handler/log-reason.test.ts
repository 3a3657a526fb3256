/** Powertools drops a field of the name `message`; found by a deployed function that was denied its table and did not say so. */
import { lambdaLogger } from '../../../lib/aws/handler/observability.ts'

test('what an error says of itself is in the log line, as its reason', () => {
  process.env.POWERTOOLS_DEV = 'true'
  const warn = jest.spyOn(console, 'warn').mockImplementation(() => {})
  try {
    const logger = lambdaLogger({ application: 'bookings', stage: 'by-hotel' })
    logger.warn('a partition goes back', { code: 'state-table-unusable', message: 'the role may not write' })
    expect(warn.mock.calls.map(([line]) => JSON.parse(line))).toEqual([
      expect.objectContaining({
        message: 'a partition goes back',
        code: 'state-table-unusable',
        reason: 'the role may not write',
      }),
    ])
  } finally {
    warn.mockRestore()
    delete process.env.POWERTOOLS_DEV
  }
})
