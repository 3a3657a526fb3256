/** Runs work on every item, a number of them at a time; rejects with the first failure once what was begun has ended. */
export async function inParallel<T>(
  items: readonly T[],
  most: number,
  work: (item: T, index: number) => Promise<void>,
): Promise<void> {
  let next = 0
  const failures: unknown[] = []
  const lane = async () => {
    while (next < items.length && failures.length === 0) {
      try {
        const index = next++
        await work(items[index] as T, index)
      } catch (error) {
        failures.push(error)
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(most, items.length) }, lane))
  if (failures.length > 0) throw failures[0]
}
