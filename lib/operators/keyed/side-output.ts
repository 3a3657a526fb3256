/** Side outputs: streams that a `process` step writes to beside its results. */
declare const recordType: unique symbol

/** Declares that a step writes values of type `V` to a stream of their own. */
export interface SideOutput<V> {
  readonly kind: 'side'
  readonly [recordType]?: () => V
}

export type SideDeclarations = { readonly [name: string]: SideOutput<unknown> }

/** What a step is given for each side output that it declares. */
export interface Side<V> {
  /** Hands a value on, once the step has returned and its results have been handed on. */
  emit(value: V): void
}

/** The type that a side output carries. */
export type SideValue<S> = S extends SideOutput<infer V> ? V : never

/** Name to {@link Side}. */
export type SidesOf<S> = { readonly [N in keyof S]: Side<SideValue<S[N]>> }

/**
 * Declares a side output of a `process` step: a stream of its own, of another type than the results.
 *
 * @example
 * const drivers = positions.keyBy('by-driver', (p) => p.driverId).process('driver-state', {
 *   state: { last: valueState<Position>() },
 *   sides: { alerts: sideOutput<Alert>() },
 *   step: (position, { state, sides }) => {
 *     if (position.speedKmh > 130) sides.alerts.emit({ driverId: position.driverId })
 *     state.last.set(position)
 *   },
 * })
 * drivers.sides.alerts.to(alerts)
 */
export function sideOutput<V>(): SideOutput<V> {
  return { kind: 'side' }
}
