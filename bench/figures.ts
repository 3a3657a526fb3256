/** What every benchmark needs: medians, an aligned table, and figures as JSON for whoever compares runs. */
import { writeFileSync } from 'node:fs'

/** One measured number. `goal` is a bound that must be met; `better` says on which side of it. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: string
  readonly goal?: number
  readonly better?: 'higher' | 'lower'
}

export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] as number
}

export const meets = ({ value, goal, better = 'higher' }: Figure): boolean =>
  goal === undefined || (better === 'higher' ? value >= goal : value <= goal)

/** Rows as aligned columns: the first to the left, the others to the right. */
export function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)))
  return rows
    .map((row) =>
      row
        .map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** Writes the figures where asked, names those that missed their goal, and sets the exit code. */
export function finish(command: string, figures: readonly Figure[], file: string | undefined): void {
  const missed = figures.filter((figure) => !meets(figure))
  if (file !== undefined) {
    const plain = figures.map(({ name, value, unit, goal }) => ({
      name,
      value,
      unit,
      ...(goal === undefined ? {} : { goal }),
    }))
    writeFileSync(file, `${JSON.stringify({ command, ok: missed.length === 0, figures: plain }, null, 2)}\n`)
  }
  for (const { name, value, unit, goal, better } of missed) {
    console.error(
      `missed: ${name} is ${value} ${unit}, the goal is ${better === 'lower' ? 'at most' : 'at least'} ${goal}`,
    )
  }
  if (missed.length > 0) process.exitCode = 1
}
