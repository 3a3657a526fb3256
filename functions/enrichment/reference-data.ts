/** The service that knows customers and prices. Its address is in the environment variable `REFERENCE_URL`. */

export interface Price {
  readonly cents: number
  /** Counts the price lists: the next one has a larger number. */
  readonly list: number
}

export interface Customer {
  readonly tier: 'gold' | 'silver'
}

/** The whole price list, by article. */
export async function fetchPrices(): Promise<ReadonlyMap<string, Price>> {
  return rows<Price>(await fetch(new URL('/prices', address())))
}

/** The customers that exist among those asked for, in one call. */
export async function fetchCustomers(ids: readonly string[]): Promise<ReadonlyMap<string, Customer>> {
  const body = JSON.stringify(ids)
  return rows<Customer>(await fetch(new URL('/customers', address()), { method: 'POST', body }))
}

function address(): string {
  const url = process.env.REFERENCE_URL
  if (url) return url
  throw new Error('the environment variable REFERENCE_URL is missing: give the address of the reference service')
}

async function rows<V>(answer: Response): Promise<ReadonlyMap<string, V>> {
  if (!answer.ok) throw new Error(`the reference service answered ${answer.status}`)
  return new Map((await answer.json()) as [string, V][])
}
