// The imaginary shop whose traffic the demo sends: customers come to the website or the app and look around; some sign up, some buy. The same
// seed always gives the same calls in the same order. This file does not depend on sending, time or the service.

import type { AliasParams, GroupParams, IdentifyParams, PageParams, ScreenParams, TrackParams } from '@switchyard/node'

export type SourceName = 'web' | 'app'

export type Call =
  | { type: 'identify'; params: IdentifyParams }
  | { type: 'track'; params: TrackParams }
  | { type: 'page'; params: PageParams }
  | { type: 'screen'; params: ScreenParams }
  | { type: 'group'; params: GroupParams }
  | { type: 'alias'; params: AliasParams }

export type SourcedCall = Call & { source: SourceName }

interface Person {
  /** Undefined until they sign up. */
  userId: string | undefined
  anonymousId: string
  first: string
  last: string
  city: string
  country: string
  locale: string
  company: Company | undefined
  ip: string
  userAgent: string
  orders: number
}

interface Product {
  sku: string
  name: string
  category: string
  price: number
}

interface Company {
  id: string
  name: string
  industry: string
  employees: number
}

const SITE = 'https://kettle-and-kin.example'

const PRODUCTS: readonly Product[] = [
  { sku: 'TEA-104', name: 'First flush Darjeeling, 100 g', category: 'tea', price: 14.9 },
  { sku: 'TEA-117', name: 'Roasted oolong, 80 g', category: 'tea', price: 12.5 },
  { sku: 'TEA-131', name: 'Mint and verbena, 20 bags', category: 'tea', price: 6.8 },
  { sku: 'COF-201', name: 'Huila espresso, 250 g', category: 'coffee', price: 11.2 },
  { sku: 'COF-208', name: 'Sidamo filter roast, 1 kg', category: 'coffee', price: 34 },
  { sku: 'COF-215', name: 'Decaf house blend, 500 g', category: 'coffee', price: 18.4 },
  { sku: 'KIT-310', name: 'Gooseneck kettle, 0.9 l', category: 'kitchen', price: 79 },
  { sku: 'KIT-322', name: 'Stoneware teapot', category: 'kitchen', price: 46.5 },
  { sku: 'KIT-335', name: 'Hand grinder, steel burrs', category: 'kitchen', price: 119 },
  { sku: 'KIT-341', name: 'Double-walled glass, pair', category: 'kitchen', price: 21.9 },
  { sku: 'GFT-402', name: 'Tasting box for two', category: 'gifts', price: 39 },
  { sku: 'GFT-409', name: 'Coffee club, three months', category: 'gifts', price: 96 },
]

const SEARCHES = ['oolong', 'grinder', 'decaf', 'gift for dad', 'teapot', 'filter papers', 'darjeeling', 'kettle', 'espresso 1 kg']

const FIRST_NAMES =
  'Amara Bruno Chiara Dmitri Elif Farah Gustav Hana Ines Jonas Keiko Liam Mireille Noor Oskar Priya Quentin Rosa Samir Tove Uma Viktor Zofia'.split(
    ' ',
  )
const LAST_NAMES =
  'Almeida Bergström Castellanos Dubois Eriksen Fischer Gallo Haddad Ivanova Jansen Kowalski Lindqvist Mbeki Nakamura Okafor Pereira Rossi Sato Varga Weiss Zhou'.split(
    ' ',
  )

const PLACES: readonly (readonly [city: string, country: string, locale: string])[] = [
  ['Lisbon', 'PT', 'pt-PT'],
  ['Gothenburg', 'SE', 'sv-SE'],
  ['Lyon', 'FR', 'fr-FR'],
  ['Leipzig', 'DE', 'de-DE'],
  ['Bologna', 'IT', 'it-IT'],
  ['Galway', 'IE', 'en-IE'],
  ['Ghent', 'BE', 'nl-BE'],
  ['Kraków', 'PL', 'pl-PL'],
]

const COMPANIES: readonly Company[] = [
  { id: 'org-tidewater', name: 'Tidewater Architects', industry: 'architecture', employees: 38 },
  { id: 'org-lumen', name: 'Lumen Dental', industry: 'health care', employees: 12 },
  { id: 'org-northloop', name: 'Northloop Logistics', industry: 'transport', employees: 240 },
  { id: 'org-fernhill', name: 'Fernhill School', industry: 'education', employees: 85 },
  { id: 'org-paperboat', name: 'Paper Boat Press', industry: 'publishing', employees: 19 },
]

const BROWSERS = [
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15',
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36',
  'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
]

const PHONES = [
  { device: { model: 'iPhone16,1', type: 'ios' }, os: { name: 'iOS', version: '18.5' } },
  { device: { model: 'Pixel 9', type: 'android' }, os: { name: 'Android', version: '16' } },
  { device: { model: 'SM-S921B', type: 'android' }, os: { name: 'Android', version: '15' } },
]

const REFERRERS = ['https://www.search.example/', 'https://news.example/best-teapots', 'https://social.example/', '']

/** The number of people in the shop at the same time. */
const VISITORS = 24
/** The number of customers who may come back. Beyond it, the oldest do not return. */
const MAX_CUSTOMERS = 400

export class Shop {
  readonly #random: Random
  readonly #customers: Person[] = []
  readonly #visits: Generator<SourcedCall, void, undefined>[] = []
  /** Whether visitors use a version of the app that sends orders with a wrong total and without a currency. */
  hasFaultyApp = false
  #people = 0
  #orders = 1_040

  constructor(seed: number) {
    this.#random = new Random(seed)
  }

  /** The next call. */
  next(): SourcedCall {
    for (;;) {
      const place = this.#random.below(VISITORS)
      const visit = (this.#visits[place] ??= this.#enter())
      const { value, done } = visit.next()
      if (!done) return value
      this.#visits[place] = this.#enter()
    }
  }

  /** Picks a customer with an account, other than `but`, who does not come back after this visit. Returns undefined if there is none. */
  leave(but: string | undefined): string | undefined {
    const at = this.#customers.findIndex(({ userId }) => userId !== but)
    return at === -1 ? undefined : this.#customers.splice(at, 1)[0]?.userId
  }

  #enter(): Generator<SourcedCall, void, undefined> {
    const random = this.#random
    const isKnown = this.#customers.length > 0 && random.chance(0.45)
    const person = isKnown ? random.pick(this.#customers) : this.#newcomer()
    return random.chance(0.3) ? this.#byApp(person) : this.#byWeb(person)
  }

  #newcomer(): Person {
    const random = this.#random
    const [city, country, locale] = random.pick(PLACES)
    this.#people += 1
    return {
      userId: undefined,
      anonymousId: `anon-${random.hex(12)}`,
      first: random.pick(FIRST_NAMES),
      last: random.pick(LAST_NAMES),
      city,
      country,
      locale,
      company: undefined,
      // Addresses that are reserved for documentation.
      ip: `${random.pick(['203.0.113', '198.51.100', '192.0.2'])}.${1 + random.below(254)}`,
      userAgent: random.pick(BROWSERS),
      orders: 0,
    }
  }

  *#byWeb(person: Person): Generator<SourcedCall, void, undefined> {
    const random = this.#random
    const say = (call: Call): SourcedCall => ({ ...call, source: 'web' })
    let here = `${SITE}/`
    let before = random.pick(REFERRERS)
    const context = (): object => ({ ip: person.ip, locale: person.locale, userAgent: person.userAgent, page: { url: here } })
    const page = (name: string, path: string, title: string): SourcedCall => {
      const referrer = before
      before = here = `${SITE}${path}`
      const properties = { path, referrer, title: `${title} · Kettle & Kin`, url: here }
      return say({ type: 'page', params: { ...who(person), name, properties, context: context() } })
    }
    const track = (event: string, properties: object): SourcedCall =>
      say({ type: 'track', params: { ...who(person), event, properties, context: context() } })

    yield page('Home', '/', 'Tea, coffee and what you need for them')
    if (person.userId !== undefined) yield track('Signed In', { method: random.pick(['password', 'passkey', 'link']) })
    if (random.chance(0.35)) {
      const query = random.pick(SEARCHES)
      yield page('Search', `/search?q=${encodeURIComponent(query)}`, `Search: ${query}`)
      yield track('Products Searched', { query, results: random.below(14) })
    }
    const cart = new Cart()
    for (let looks = 1 + random.below(4); looks > 0; looks--) {
      const product = random.pick(PRODUCTS)
      yield page('Product', `/${product.category}/${product.sku.toLowerCase()}`, product.name)
      yield track('Product Viewed', { ...product, currency: 'EUR' })
      if (random.chance(0.4)) {
        const quantity = 1 + random.below(3)
        cart.add(product, quantity)
        yield track('Product Added', { ...product, quantity, cart_total: cart.total(), currency: 'EUR' })
      }
    }
    if (person.userId === undefined && random.chance(cart.isEmpty() ? 0.15 : 0.7)) {
      yield page('Sign up', '/account/new', 'A new account')
      this.#signUp(person)
      yield say({
        type: 'alias',
        params: { userId: person.userId as unknown as string, previousId: person.anonymousId, context: context() },
      })
      yield say({ type: 'identify', params: { ...who(person), traits: traitsOf(person), context: context() } })
      yield track('Signed Up', { plan: 'free', newsletter: random.chance(0.5) })
    }
    if (person.userId !== undefined && person.company === undefined && random.chance(0.25)) {
      person.company = random.pick(COMPANIES)
      const { id, ...traits } = person.company
      yield say({ type: 'group', params: { ...who(person), groupId: id, traits, context: context() } })
    }
    if (!cart.isEmpty()) yield* this.#checkout(person, cart, track)
  }

  *#byApp(person: Person): Generator<SourcedCall, void, undefined> {
    const random = this.#random
    const say = (call: Call): SourcedCall => ({ ...call, source: 'app' })
    const version = random.pick(['4.2.0', '4.1.3', '3.9.8'])
    const app = { name: 'Kettle & Kin', version: this.hasFaultyApp ? '5.0.0' : version, build: String(1_180 + random.below(40)) }
    const context = { ip: person.ip, locale: person.locale, app, ...random.pick(PHONES) }
    const screen = (name: string, properties: object = {}): SourcedCall =>
      say({ type: 'screen', params: { ...who(person), name, properties, context } })
    const track = (event: string, properties: object): SourcedCall =>
      say({ type: 'track', params: { ...who(person), event, properties, context } })

    yield track('Application Opened', { from_background: random.chance(0.6) })
    yield screen('Home')
    if (person.userId === undefined && random.chance(0.4)) {
      this.#signUp(person)
      yield say({ type: 'alias', params: { userId: person.userId as unknown as string, previousId: person.anonymousId, context } })
      yield say({ type: 'identify', params: { ...who(person), traits: traitsOf(person), context } })
    }
    const cart = new Cart()
    for (let looks = 1 + random.below(3); looks > 0; looks--) {
      const product = random.pick(PRODUCTS)
      yield screen('Product', { sku: product.sku })
      yield track('Product Viewed', { ...product, currency: 'EUR' })
      if (random.chance(0.35)) {
        cart.add(product, 1)
        yield track('Product Added', { ...product, quantity: 1, cart_total: cart.total(), currency: 'EUR' })
      }
    }
    if (!cart.isEmpty()) {
      yield screen('Cart', { items: cart.count() })
      yield* this.#checkout(person, cart, this.hasFaultyApp ? (event, properties) => track(event, faulty(properties)) : track)
    }
  }

  *#checkout(
    person: Person,
    cart: Cart,
    track: (event: string, properties: object) => SourcedCall,
  ): Generator<SourcedCall, void, undefined> {
    const random = this.#random
    yield track('Checkout Started', { items: cart.count(), value: cart.total(), currency: 'EUR' })
    if (random.chance(0.35)) return
    this.#orders += 1
    person.orders += 1
    const shipping = cart.total() >= 50 ? 0 : 4.9
    yield track('Order Completed', {
      order_id: `KK-${this.#orders}`,
      total: cents(cart.total() + shipping),
      shipping,
      currency: 'EUR',
      payment: random.pick(['card', 'card', 'invoice', 'wallet']),
      products: cart.lines(),
    })
    if (random.chance(0.04)) yield track('Order Refunded', { order_id: `KK-${this.#orders}`, total: cents(cart.total() + shipping) })
  }

  #signUp(person: Person): void {
    person.userId = `cus-${1_000 + this.#people}-${this.#random.hex(4)}`
    this.#customers.push(person)
    if (this.#customers.length > MAX_CUSTOMERS) this.#customers.shift()
  }
}

/** What version 5.0.0 of the app sends. */
function faulty({ currency, total, ...properties }: { currency?: string; total?: number }): object {
  return total === undefined ? { ...properties, currency } : { ...properties, total: `${total} ${currency}` }
}

class Cart {
  readonly #lines: { product: Product; quantity: number }[] = []

  add(product: Product, quantity: number): void {
    this.#lines.push({ product, quantity })
  }

  isEmpty(): boolean {
    return this.#lines.length === 0
  }

  count(): number {
    return this.#lines.reduce((sum, { quantity }) => sum + quantity, 0)
  }

  total(): number {
    return cents(this.#lines.reduce((sum, { product, quantity }) => sum + product.price * quantity, 0))
  }

  lines(): { sku: string; name: string; price: number; quantity: number }[] {
    return this.#lines.map(({ product: { sku, name, price }, quantity }) => ({ sku, name, price, quantity }))
  }
}

function who({ userId, anonymousId }: Person): { userId: string; anonymousId: string } | { anonymousId: string } {
  return userId === undefined ? { anonymousId } : { userId, anonymousId }
}

function traitsOf({ first, last, city, country, locale }: Person): Record<string, unknown> {
  const address = `${first}.${last}`
    .toLowerCase()
    .normalize('NFD')
    .replaceAll(/[^a-z.]/g, '')
  return { name: `${first} ${last}`, email: `${address}@mail.example`, city, country, locale, plan: 'free' }
}

function cents(amount: number): number {
  return Math.round(amount * 100) / 100
}

/** Mulberry32: small, with the same results on every platform. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** At least 0, less than 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  chance(share: number): boolean {
    return this.next() < share
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T
  }

  hex(digits: number): string {
    return Array.from({ length: digits }, () => this.below(16).toString(16)).join('')
  }
}
