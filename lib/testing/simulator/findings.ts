/** What referees say. */

/** A promise that a run broke. */
export interface Finding {
  readonly referee: string
  readonly message: string
}

export type Referee<Evidence> = (evidence: Evidence) => AsyncIterable<string> | Iterable<string>

/** How many findings of one referee are kept. */
const mostFindings = 5

/** Asks each referee. Where a run did not drain, which the first looks for, the others have nothing to look at yet. */
export async function findingsOf<Evidence>(
  referees: { readonly [name: string]: Referee<Evidence> },
  evidence: Evidence,
): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const [referee, look] of Object.entries(referees)) {
    let count = 0
    for await (const message of look(evidence)) {
      findings.push({ referee, message })
      if (++count === mostFindings) break
    }
    if (referee === 'drains' && count > 0) break
  }
  return findings
}
