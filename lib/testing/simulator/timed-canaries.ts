/**
 * Canaries of the application with time: rules of DESIGN 5 and 7 that are broken on purpose, each at a port. Some of them
 * rewrite what a port carries, as a runtime that broke the rule would have written it.
 */
import { type RecordInfo, SourceRecord } from '../../core/record.ts'
import type { KeyedOperator, StepTimes } from '../../operators/keyed/keyed-operator.ts'
import { rest } from '../../runtime/batch.ts'
import type { Frame, FrameRecord, Upstream, UpstreamNews } from '../../runtime/frames/frame.ts'
import { decodeFrame, encodeControl, encodeFrame } from '../../runtime/frames/frame-format.ts'
import type { FramePublisher } from '../../runtime/frames/publisher.ts'
import { upstreamKey } from '../../runtime/frames/upstream-memory.ts'
import type { Runner } from '../../runtime/runner.ts'
import type { DueEntry, StateStore } from '../../state/state-store.ts'
import { canaries } from './canaries.ts'
import { type Canary, lineageWith, storeWith } from './canary.ts'
import { type ProgressChange, publisherWith, type Rewrite, storeWithProgress } from './rewrites.ts'
import { timedNames, type Watched, type WindowOutput, windowsBehindTimers } from './timed-workload.ts'

const crashing = { any: true, crash: 0.02 }
const restless = { any: true, crash: 0.01, zombie: 0.02, sleeps: 0.5, failOver: 0.01, redelivery: 0.02, coldStart: 0.2 }
const calm = { crash: 0, zombie: 0, failOver: 0, redelivery: 0, lostAnswer: 0, throttle: 0, clockJump: 0, silence: 0 }

type RewriteNews = (news: readonly UpstreamNews[]) => readonly UpstreamNews[]

/** An announcer that says other things. */
const announcing = (publisher: FramePublisher, rewrite: RewriteNews): FramePublisher => ({
  async publish(frames, signal) {
    const others = frames.flatMap((encoded) => {
      const frame = decodeFrame(encoded.bytes)
      if (frame.kind !== 'control') return [encoded]
      const news = rewrite(frame.news)
      return news.length === 0 ? [] : [encodeControl({ ...frame, news })]
    })
    if (others.length > 0) await publisher.publish(others, signal)
  },
})

/** A store whose progress is read or written otherwise: that of the first keyed stage, or of the stage that reads the source. */
const progressWith = (store: StateStore, change: ProgressChange): StateStore =>
  storeWithProgress(store, timedNames, change)

/** A runner whose frames in a batch are others: what it reads is not what stands in the log. */
const reading = (runner: Runner, rewrite: (frames: readonly Frame[]) => Rewrite): Runner => ({
  start: () => runner.start(),
  settled: () => runner.settled(),
  run(batch, invocation) {
    const changed = batch.map(({ partition, records: list }) => {
      const records = rest(list, 0)
      const frames = records.map(({ payload }) => frameIn(payload))
      const change = rewrite(frames.filter((frame) => frame !== undefined))
      const others = records.map((record, i) => {
        const frame = frames[i]
        if (frame === undefined) return record
        const { source, position, arrivalTimeMs, key = '' } = record
        const payload = encodeFrame(change(frame)).bytes
        return new SourceRecord({ source, partition, position, arrivalTimeMs, key, payload })
      })
      return { partition, records: others }
    })
    return runner.run(changed, invocation)
  },
})

function frameIn(payload: Uint8Array | null): Frame | undefined {
  try {
    const frame = decodeFrame(payload ?? new Uint8Array())
    return frame.kind === 'frame' ? frame : undefined
  } catch {
    return undefined
  }
}

const lastMarkOf = ({ markMs, records }: Frame): number => records.at(-1)?.ownMarkMs ?? markMs
const largestTimeOf = ({ markMs, records }: Frame): number =>
  Math.max(markMs, ...records.map(({ eventTimeMs }) => eventTimeMs - timedNames.disorderMs))

/** The canary of the other application, looked for in runs with time. */
const withTime = (canary: Canary | undefined): Canary => ({ ...(canary as Canary), hasTime: true })

const dueAfterCommit: Canary = {
  breaks: 'due entries are put after the commit that makes them necessary',
  caughtBy: 'due-entries-kept',
  store(store) {
    let waiting: DueEntry[] = []
    return storeWith(store, {
      putDue: async (entries) => void waiting.push(...entries),
      async commit(write, signal) {
        const outcome = await store.commit(write, signal)
        await store.putDue(waiting.splice(0), signal)
        waiting = []
        return outcome
      },
    })
  },
}

const dueDeletedWhenFound: Canary = {
  breaks: 'due entries are deleted when they are found, before progress has passed them',
  caughtBy: 'due-entries-kept',
  store: (store) =>
    storeWith(store, {
      async readDue(slot, domain, untilMs, options, signal) {
        const page = await store.readDue(slot, domain, untilMs, options, signal)
        await store.deleteDue(page.entries, signal)
        return page
      },
    }),
}

const dueNeverDeleted: Canary = {
  breaks: 'due entries are never deleted',
  caughtBy: 'due-entries-deleted',
  faults: calm,
  store: (store) => storeWith(store, { deleteDue: async () => undefined }),
}

const earliestForgotten: Canary = {
  breaks: 'progress forgets the earliest due time of every slot',
  caughtBy: 'drains',
  store: (store) =>
    progressWith(store, {
      write: (progress) => ({ ...progress, earliest: { event: new Map(), processing: new Map() } }),
    }),
}

const framesWithTheirOwnMark: Canary = {
  breaks: 'a frame carries the own mark of its last record, not the mark of the batch start',
  caughtBy: 'watermark-behind-own-marks',
  publisher: (publisher) => publisherWith(publisher, (frame) => ({ ...frame, markMs: lastMarkOf(frame) })),
}

const markBeforeItsFrames: Canary = {
  breaks: 'a mark is told before all frames that it covers are acknowledged',
  caughtBy: 'watermark-behind-own-marks',
  publisher: (publisher) => publisherWith(publisher, (frame) => ({ ...frame, markMs: largestTimeOf(frame) })),
}

const noFirstSet: Canary = {
  breaks: 'the watermark does not wait until the announcer has told the upstreams',
  caughtBy: 'watermark-behind-own-marks',
  publisher: (publisher) => ({
    publish(frames, signal) {
      const others = frames.map((encoded) => {
        const frame = decodeFrame(encoded.bytes)
        return frame.kind === 'control' ? encodeControl({ ...frame, from: 'announcer' }) : encoded
      })
      return publisher.publish(others, signal)
    },
  }),
}

const closedBeforeChildrenOpen: Canary = {
  breaks: 'a parent is closed in one round, and its children are opened in a later one',
  caughtBy: 'watermark-behind-own-marks',
  faults: { any: true, reshard: 0.02 },
  announcerFrames: (publisher) =>
    announcing(publisher, (news) => {
      const closes = news.filter(({ state }) => state === 'closed')
      return closes.length > 0 ? closes : news
    }),
}

const closedBeforeDrained: Canary = {
  breaks: 'a partition is closed for the stage below before it is drained',
  caughtBy: 'applied-once',
  faults: { any: true, reshard: 0.02, block: 0.01, round: 0.02 },
  announcerLineage: (lineage, stage) =>
    stage === timedNames.source ? lineageWith(lineage, { isDrained: async () => true }) : lineage,
}

const idleWhileLagging: Canary = {
  breaks: 'a partition that lags behind gets an idle mark',
  caughtBy: 'watermark-behind-own-marks',
  faults: { any: true, clockJump: 0.003, round: 0.02, block: 0.01 },
  announcerLineage: (lineage) => lineageWith(lineage, { isCaughtUp: async () => true }),
}

const emptyNeverIdle: Canary = {
  breaks: 'a partition that never had a record is never said to be idle',
  caughtBy: 'drains',
  announcerFrames: (publisher) => announcing(publisher, (news) => news.filter(({ state }) => state !== 'idle')),
}

const saidOnce: Canary = {
  breaks: 'the announcer says each thing once, whether or not progress ever shows it',
  caughtBy: 'drains',
  faults: { ...crashing, round: 0.02, reshard: 0.006 },
  // The frame of a round that crashes is never said again.
  announcerFrames: (publisher, stage, said) =>
    announcing(publisher, (news) =>
      news.filter(({ upstream, state }) => {
        const name = `${stage} ${upstream.name}/${upstream.partition} ${state}`
        const isNew = !said.has(name)
        said.add(name)
        return isNew
      }),
    ),
}

const closedForgotten: Canary = {
  breaks: 'a closed upstream is forgotten at once, with what was read of it',
  caughtBy: 'applied-once',
  faults: { ...restless, reshard: 0.03, round: 0.02 },
  store: (store) =>
    progressWith(store, {
      read(progress) {
        const memories = progress.memories.copy()
        const upstreams = new Map(progress.upstreams)
        for (const [name, { state, upstream }] of progress.upstreams) {
          if (state !== 'closed') continue
          upstreams.delete(name)
          memories.forget(upstream)
        }
        return { ...progress, upstreams, memories }
      },
    }),
}

/** An announcer whose words are noted, whether or not they arrive. */
const noting: NonNullable<Canary['announcerFrames']> = (publisher, _, said) =>
  announcing(publisher, (news) => {
    for (const { upstream } of news) said.add(upstreamKey(upstream))
    return news
  })

/** Whether the announcer has named partitions of the upstream's stage, and not this one. */
const isUnnamed = (upstream: Upstream, said: ReadonlySet<string>): boolean =>
  !said.has(upstreamKey(upstream)) &&
  [...said].some((known) => known.startsWith(upstreamKey({ ...upstream, partition: '' })))

const unnamedDropped: Canary = {
  breaks: 'what a partition sends before the announcer has named it is dropped, where others of its stage are known',
  caughtBy: 'nothing-lost',
  faults: { any: true, reshard: 0, unheardOf: 0.01 },
  announcerFrames: noting,
  publisher: (publisher, { said }) => ({
    publish(frames, signal) {
      const kept = frames.filter(({ bytes }) => {
        const frame = decodeFrame(bytes)
        return frame.kind !== 'frame' || !isUnnamed(frame.upstream, said)
      })
      return publisher.publish(kept, signal)
    },
  }),
}

/** On Kafka, where a new partition has no parent whose mark would hold time back. */
const unnamedHoldsNothingBack: Canary = {
  breaks: 'a partition whose first frames come before the announcer has named it holds no time back',
  caughtBy: 'applied-once',
  faults: { any: true, reshard: 0, unheardOf: 0.01, round: 0.04 },
  kafka: { mode: 'provisioned', answers: 'provisioned' },
  announcerFrames: noting,
  runner: (runner, said) =>
    reading(
      runner,
      () => (frame) => (isUnnamed(frame.upstream, said) ? { ...frame, markMs: frame.markMs + 3_600_000 } : frame),
    ),
}

const ownMarksForgotten: Canary = {
  breaks: 'records do not carry their own mark, so the watermark alone says what is late',
  caughtBy: 'as-the-source-says',
  publisher: (publisher) =>
    publisherWith(publisher, (frame) => ({
      ...frame,
      records: frame.records.map((record): FrameRecord => ({ ...record, ownMarkMs: Number.NEGATIVE_INFINITY })),
    })),
}

const eventTimeForgotten: Canary = {
  breaks: 'the stage that reads the source forgets its largest event time between batches',
  caughtBy: 'nothing-lost',
  // The announcer still knows it, or nothing would ever be due.
  store: (store, { owner }) =>
    owner.name.startsWith('announcer')
      ? store
      : progressWith(store, {
          readSource: (progress) => ({
            ...progress,
            largestEventTimeMs: Number.NEGATIVE_INFINITY,
            largestArrivedAtMs: 0,
          }),
        }),
}

const watermarkOfTheBatchEnd: Canary = {
  breaks: 'every number of a batch has the watermark of its end',
  caughtBy: 'applied-once',
  runner: (runner) =>
    reading(runner, (frames) => {
      const marks = new Map<string, number>()
      for (const { upstream, markMs } of frames) {
        marks.set(upstream.partition, Math.max(marks.get(upstream.partition) ?? markMs, markMs))
      }
      return (frame) => ({ ...frame, markMs: marks.get(frame.upstream.partition) ?? frame.markMs })
    }),
}

const watermarkAhead: Canary = {
  breaks: 'windows close half a minute before their time',
  caughtBy: 'never-early',
  runner: (runner) => reading(runner, () => (frame) => ({ ...frame, markMs: frame.markMs + 30_000 })),
}

const finalsByAttempt: Canary = {
  breaks: 'final results are named by the attempt that makes them',
  caughtBy: 'final-once',
  faults: crashing,
  sink: (sink, { owner }) => ({
    prepare: (output) =>
      sink.prepare(isFinal(output.value) ? { ...output, index: output.index + numberOf(owner.name) } : output),
    deliver: (items, call) => sink.deliver(items, call),
  }),
}

/** Environments are numbered. */
const numberOf = (name: string): number => Number(name.slice(name.indexOf('#') + 1))
const isFinal = (value: unknown): boolean => (value as Partial<WindowOutput>).isFinal === true

const seenOnceMore: Canary = {
  breaks: 'what was seen of a user is counted once more with each commit',
  caughtBy: 'state-equals-oracle',
  store: (store) =>
    storeWith(store, {
      commit(write, signal) {
        const seen = write.item.states['watch.seen']
        const states = typeof seen === 'number' ? { ...write.item.states, 'watch.seen': seen + 1 } : write.item.states
        return store.commit({ ...write, item: { ...write.item, states } }, signal)
      },
    }),
}

const sentAgain: Canary = {
  breaks: 'a sink sends what it was given first once more behind all else',
  caughtBy: 'revisions-in-order',
  faults: calm,
  sink: (sink) => ({
    prepare: (output) => sink.prepare(output),
    async deliver(items, call) {
      const outcomes = await sink.deliver(items, call)
      await sink.deliver(items.slice(0, 1), call)
      return outcomes
    },
  }),
}

const sentAfterASleep: Canary = {
  breaks: 'a sink waits before it sends, and does not ask then whether the deadline has passed',
  caughtBy: 'begun-in-time',
  faults: { any: true, zombie: 0.01, sleeps: 1 },
  sink: (sink, { clock }) => ({
    prepare: (output) => sink.prepare(output),
    async deliver(items) {
      await clock.sleep(1_000)
      return sink.deliver(items, { signal: new AbortController().signal })
    },
  }),
}

/** For the windows behind timers it is another time wherever the watch says what a timer has made. */
const behindTimers =
  (changeOf: (said: RecordInfo) => Partial<StepTimes>) =>
  (operator: KeyedOperator): KeyedOperator => {
    if (!windowsBehindTimers.some(({ name }) => operator.name === `${name}-windows`)) return operator
    return {
      ...operator,
      link(next, side, context) {
        let ofTimer: RecordInfo | undefined
        const times = (): StepTimes => {
          const { watermarkMs, ownMarkMs, processingMs } = context.times()
          return { watermarkMs, ownMarkMs, processingMs, ...(ofTimer && changeOf(ofTimer)) }
        }
        const linked = operator.link(next, side, { ...context, times })
        return {
          ...linked,
          record(value, record) {
            ofTimer = isOfTimer((value as Watched).what) ? record : undefined
            linked.record(value, record)
            ofTimer = undefined
          },
        }
      },
    }
  }

const isOfTimer = (what: string): boolean => what.startsWith('idle') || what.startsWith('echo')

const timersTurnTimeBack: Canary = {
  breaks: 'a timer that another has set in the past puts out at its own time, for which windows behind it had closed',
  caughtBy: 'final-once',
  operator: behindTimers(({ eventTimeMs }) => ({ watermarkMs: eventTimeMs })),
}

const lateByWhoseRecord: Canary = {
  breaks:
    'what a timer puts out in the step of a record of its own key has the own mark of a record that is much later',
  caughtBy: 'timers-in-time',
  operator: behindTimers(({ source, eventTimeMs }) =>
    source === timedNames.keyed ? {} : { ownMarkMs: eventTimeMs + 600_000 },
  ),
}

/** By their stable names. */
export const timedCanaries: { readonly [name: string]: Canary } = Object.fromEntries(
  Object.entries({
    'due-after-commit': dueAfterCommit,
    'due-deleted-when-found': dueDeletedWhenFound,
    'due-never-deleted': dueNeverDeleted,
    'earliest-forgotten': earliestForgotten,
    'frames-with-their-own-mark': framesWithTheirOwnMark,
    'mark-before-its-frames': markBeforeItsFrames,
    'no-first-set': noFirstSet,
    'closed-before-children-open': closedBeforeChildrenOpen,
    'closed-before-drained': closedBeforeDrained,
    'idle-while-lagging': idleWhileLagging,
    'empty-never-idle': emptyNeverIdle,
    'said-once': saidOnce,
    'closed-forgotten': closedForgotten,
    'unnamed-dropped': unnamedDropped,
    'unnamed-holds-nothing-back': unnamedHoldsNothingBack,
    'own-marks-forgotten': ownMarksForgotten,
    'event-time-forgotten': eventTimeForgotten,
    'watermark-of-the-batch-end': watermarkOfTheBatchEnd,
    'watermark-ahead': watermarkAhead,
    'finals-by-attempt': finalsByAttempt,
    'seen-once-more': seenOnceMore,
    'sent-again': sentAgain,
    'sent-after-a-sleep': sentAfterASleep,
    'timers-turn-time-back': timersTurnTimeBack,
    'late-by-whose-record': lateByWhoseRecord,
    'time-stamped': canaries['sink-stamps-the-time'],
    'delivered-backwards': canaries['outputs-backwards'],
    'bug-with-time': canaries['bug-in-the-runner'],
  }).map(([name, canary]) => [name, withTime(canary)]),
)
