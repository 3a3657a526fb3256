/**
 * What AWS charges in us-east-1, in dollars, without free tiers and discounts; looked up in November 2026.
 *
 * @see https://aws.amazon.com/dynamodb/pricing/on-demand/
 * @see https://aws.amazon.com/lambda/pricing/
 * @see https://docs.aws.amazon.com/lambda/latest/dg/kafka-scaling-modes.html
 * @see https://aws.amazon.com/kinesis/data-streams/pricing/
 * @see https://aws.amazon.com/cloudwatch/pricing/
 * @see https://aws.amazon.com/managed-service-apache-flink/pricing/
 */
export const pricesAsOf = 'November 2026'

export const prices = {
  /** The Standard table class on demand, since 2024-11-01. */
  dynamodb: {
    perMillionWriteUnits: 0.625,
    perMillionReadUnits: 0.125,
    perGbMonth: 0.25,
    /** To be recoverable to any point in time. */
    recoveryPerGbMonth: 0.2,
  },
  lambda: { perMillionRequests: 0.2, perGbSecondArm: 0.0000133334 },
  /** On demand, standard. Each record counts as whole KB. */
  kinesis: { perStreamHour: 0.04, perGbIn: 0.08, perGbOut: 0.04, perGbMonthBeyondOneDay: 0.1 },
  /** Lambda's event poller units: each has ten pollers, and takes 20 MB a second. */
  kafkaPollers: { perUnitHour: 0.185, pollersPerUnit: 10, mbPerUnitSecond: 20 },
  cloudwatch: { perMetricMonth: 0.3, perAlarmMonth: 0.1, perDashboardMonth: 3, perGbOfLogs: 0.5 },
  /** A KPU is 1 vCPU, 4 GB of memory and 50 GB of storage, which is charged; each application takes one more to be steered. */
  flink: { perKpuHour: 0.11, storageGbPerKpu: 50, storagePerGbMonth: 0.1 },
} as const

/** A month, as AWS counts: 730 hours. */
export const hoursPerMonth = 730
export const secondsPerMonth = hoursPerMonth * 3_600
