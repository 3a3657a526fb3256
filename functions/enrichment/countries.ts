/** Countries and their standard rate of value added tax, in percent. */
export interface Country {
  readonly name: string
  readonly vatPercent: number
}

export const countries: ReadonlyMap<string, Country> = new Map([
  ['AT', { name: 'Austria', vatPercent: 20 }],
  ['CH', { name: 'Switzerland', vatPercent: 8.1 }],
  ['DE', { name: 'Germany', vatPercent: 19 }],
  ['FR', { name: 'France', vatPercent: 20 }],
  ['IT', { name: 'Italy', vatPercent: 22 }],
  ['LU', { name: 'Luxembourg', vatPercent: 17 }],
])
