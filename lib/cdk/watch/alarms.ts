/** The alarms of an application: by the rules of alarm-rules.ts, with the thresholds that its user gives. */
import { Duration } from 'aws-cdk-lib'
import { Alarm, ComparisonOperator, type Metric, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch'
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions'
import type { IFunction } from 'aws-cdk-lib/aws-lambda'
import type { ITopic } from 'aws-cdk-lib/aws-sns'
import { Construct } from 'constructs'
import { ConfigurationError } from '../../core/errors.ts'
import { type AlarmRule, type AnnouncerAlarm, alarmRules, type StageAlarm } from './alarm-rules.ts'
import { lambdaMetric, look, type WatchedStage } from './metrics.ts'

/** Where an alarm goes off, in the unit of its metric (times in ms); false leaves it out. */
export type Thresholds<Name extends string> = Readonly<Partial<Record<Name, number | false>>>

export interface AlarmsProps {
  /** Who is told when an alarm goes off and when it is over. @default nobody: alarms only change their state */
  readonly topic?: ITopic
  /** Thresholds of every stage. @default those of docs/operations.md */
  readonly thresholds?: Thresholds<StageAlarm>
  /** Thresholds of one stage, by its name; they win over `thresholds`. @default none */
  readonly stages?: Readonly<Record<string, Thresholds<StageAlarm>>>
  /** Thresholds of the announcer's alarms. @default those of docs/operations.md */
  readonly announcer?: Thresholds<AnnouncerAlarm>
}

/** An announcer, and how often it is to run: each minute unless said. */
export interface WatchedAnnouncer {
  readonly function: IFunction
  readonly every: Duration | undefined
}

export interface AlarmsParts {
  readonly application: string
  readonly stages: readonly WatchedStage[]
  /** Undefined where there is none. */
  readonly announcer: WatchedAnnouncer | undefined
  readonly props: AlarmsProps
}

/** The alarms, each of which can be reached: `alarms.of('by-hotel', 'late')`. */
export class Alarms extends Construct {
  /** All of them: those of the stages in the order of the plan, then the announcer's. */
  readonly all: readonly Alarm[]
  readonly #made = new Map<string, Alarm>()

  constructor(scope: Construct, parts: AlarmsParts) {
    super(scope, 'Alarms')
    const { stages, announcer, props } = parts
    checkNames(props)
    for (const stage of stages) this.#watch(stage, parts)
    if (announcer) this.#watchAnnouncer(announcer, parts)
    this.all = [...this.#made.values()]
    if (props.topic === undefined) return
    const action = new SnsAction(props.topic)
    for (const alarm of this.all) {
      alarm.addAlarmAction(action)
      alarm.addOkAction(action)
    }
  }

  /** The alarm of a stage; undefined where it has none, as where its threshold is false. */
  of(stage: string, name: StageAlarm): Alarm | undefined {
    return this.#made.get(`stage ${stage} ${name}`)
  }

  /** The alarm of the announcer; undefined where there is none. */
  ofAnnouncer(name: AnnouncerAlarm): Alarm | undefined {
    return this.#made.get(`announcer ${name}`)
  }

  #watch(stage: WatchedStage, { application, props }: AlarmsParts): void {
    const scope = new Construct(this, `Stage-${stage.name}`)
    for (const name of Object.keys(alarmRules) as StageAlarm[]) {
      const rule = alarmRules[name]
      const given = props.stages?.[stage.name]?.[name] ?? props.thresholds?.[name]
      const threshold = given ?? rule.threshold(stage)
      const metric = rule.metric(stage)
      if (metric === undefined || threshold === undefined || threshold === false) continue
      const what = `${application}, stage ${stage.name}: ${rule.says} (${name})`
      this.#made.set(`stage ${stage.name} ${name}`, alarmOf(scope, name, { ...rule, metric, threshold, what }))
    }
  }

  #watchAnnouncer({ function: target, every = Duration.minutes(1) }: WatchedAnnouncer, parts: AlarmsParts): void {
    const scope = new Construct(this, 'Announcer')
    const { application, props } = parts
    const minutes = every.isUnresolved() ? 60 : Math.ceil(every.toMinutes({ integral: false }))
    const rules = {
      errors: { metric: 'Errors', threshold: 0, periods: [3, 3], says: 'its rounds fail' },
      silent: { metric: 'Invocations', threshold: 1, side: 'below', periods: [5, 5], says: 'it does not run' },
    } as const
    for (const [name, rule] of Object.entries(rules) as [AnnouncerAlarm, (typeof rules)[AnnouncerAlarm]][]) {
      const threshold = props.announcer?.[name] ?? rule.threshold
      if (threshold === false) continue
      const metric = lambdaMetric(target, rule.metric, look('Sum', minutes))
      const what = `${application}, announcer: ${rule.says}, so windows of silent streams stay open (${name})`
      // A function that is not invoked has no metric at all.
      const missing = name === 'silent' ? TreatMissingData.BREACHING : TreatMissingData.NOT_BREACHING
      this.#made.set(`announcer ${name}`, alarmOf(scope, name, { ...rule, metric, threshold, missing, what }))
    }
  }
}

interface AlarmParts extends Pick<AlarmRule, 'side' | 'periods' | 'missing'> {
  readonly metric: Metric
  readonly threshold: number
  readonly what: string
}

function alarmOf(scope: Construct, id: string, parts: AlarmParts): Alarm {
  const { metric, threshold, what, side, periods } = parts
  const { GREATER_THAN_THRESHOLD, LESS_THAN_THRESHOLD } = ComparisonOperator
  const [datapointsToAlarm, evaluationPeriods] = periods
  return new Alarm(scope, id, {
    metric,
    threshold,
    comparisonOperator: side === 'below' ? LESS_THAN_THRESHOLD : GREATER_THAN_THRESHOLD,
    datapointsToAlarm,
    evaluationPeriods,
    treatMissingData: parts.missing ?? TreatMissingData.NOT_BREACHING,
    alarmDescription: what,
  })
}

/** A mistyped name would leave an alarm as it is, in silence. */
function checkNames({ thresholds = {}, stages = {}, announcer = {} }: AlarmsProps): void {
  check('alarms.thresholds', thresholds, Object.keys(alarmRules))
  for (const [stage, own] of Object.entries(stages)) check(`alarms.stages["${stage}"]`, own, Object.keys(alarmRules))
  check('alarms.announcer', announcer, ['errors', 'silent'])
}

function check(where: string, thresholds: Thresholds<string>, known: readonly string[]): void {
  for (const [name, value] of Object.entries(thresholds)) {
    if (!known.includes(name)) {
      throw new ConfigurationError(`${where} names "${name}", which is no alarm: there are ${known.join(', ')}.`)
    }
    if (value === false || (typeof value === 'number' && value >= 0 && value < Number.POSITIVE_INFINITY)) continue
    throw new ConfigurationError(
      `${where} has ${String(value)} for "${name}": give a number that is not negative, in the unit of its metric, or false to leave the alarm out.`,
    )
  }
}
