/** The queries that there are, by name. */
import { q0 } from './q0/topology.ts'
import { q1 } from './q1/topology.ts'
import { q2 } from './q2/topology.ts'
import { q5 } from './q5/topology.ts'
import { q7 } from './q7/topology.ts'
import { q11 } from './q11/topology.ts'
import { q12 } from './q12/topology.ts'
import { q14 } from './q14/topology.ts'
import { q21 } from './q21/topology.ts'
import { q22 } from './q22/topology.ts'
import type { MakeQuery } from './query.ts'

export const queries: Readonly<Record<string, MakeQuery>> = {
  q0,
  q1,
  q2,
  q5,
  q7,
  q11,
  q12,
  q14,
  q21,
  q22,
}
