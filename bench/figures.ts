/** What every benchmark needs: medians, an aligned table, and figures as JSON for whoever compares runs. */
import { writeFileSync } from 'node:fs'

/**
 * One measured number; not a finite one where what was to be measured never came. `goal` is a bound that must be met; `better` says on
 * which side of it, or that it is the number itself.
 */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: string
  readonly goal?: number
  /** @default 'higher' */
  readonly better?: 'higher' | 'lower' | 'exactly'
}

/** The figures as `--json FILE` holds them. */
export interface FiguresFile {
  readonly command: string
  readonly ok: boolean
  /** Those that have a value. `better` is there where `goal` is. */
  readonly figures: readonly Figure[]
  /** Names of the figures that missed their goal, those included that never got a value. */
  readonly missed: readonly string[]
}

export const median = (values: readonly number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] as number
}

export function meets({ value, goal, better = 'higher' }: Figure): boolean {
  if (goal === undefined) return true
  if (better === 'exactly') return value === goal
  return better === 'higher' ? value >= goal : value <= goal
}

/** What the goal demands of the value, in words. */
export const demandOf = ({ better = 'higher' }: Figure): string =>
  better === 'exactly' ? 'exactly' : better === 'lower' ? 'at most' : 'at least'

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

/** What is written of the figures. JSON has no number for what never came, so such a figure is named only where it missed. */
export function figuresFile(command: string, figures: readonly Figure[]): FiguresFile {
  const missed = figures.filter((figure) => !meets(figure)).map(({ name }) => name)
  const plain = figures
    .filter(({ value }) => Number.isFinite(value))
    .map(({ name, value, unit, goal, better = 'higher' }) => ({
      ...{ name, value, unit },
      ...(goal === undefined ? {} : { goal, better }),
    }))
  return { command, ok: missed.length === 0, figures: plain, missed }
}

/** Writes the figures where asked, names those that missed their goal or says that none did, and sets the exit code. */
export function finish(command: string, figures: readonly Figure[], file: string | undefined): void {
  if (file !== undefined) writeFileSync(file, `${JSON.stringify(figuresFile(command, figures), null, 2)}\n`)
  const missed = figures.filter((figure) => !meets(figure))
  for (const figure of missed) {
    const { name, value, unit, goal } = figure
    const what = Number.isFinite(value) ? `is ${value} ${unit}` : 'never came'
    console.error(`missed: ${name} ${what}, the goal is ${demandOf(figure)} ${goal}`)
  }
  const goals = figures.filter(({ goal }) => goal !== undefined).length
  if (missed.length > 0) process.exitCode = 1
  else if (goals > 0) console.log(goals === 1 ? '\nThe goal is met.' : `\nAll ${goals} goals are met.`)
}
