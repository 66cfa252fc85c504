import assert from 'node:assert/strict'
import { test } from 'node:test'
import { simpleSubscribe, subscribeOf, subscribeSentence } from './subscribe-sentence.ts'

const SENTENCES: readonly [expression: string, sentence: string | null][] = [
  ['type = "track"', 'When a track event arrives'],
  ['type="page"', 'When a page event arrives'],
  ['type = "identify"', 'When an identify event arrives'],
  ['type = "track" and event = "Order Completed"', 'When a track event named Order Completed arrives'],
  ['type = "track" AND event == "Order Completed"', 'When a track event named Order Completed arrives'],
  ['event = "Order Completed"', 'When an event named Order Completed arrives'],
  ['event = "A" or event = "B" or event = "C"', 'When an event named A, B or C arrives'],
  ['type = "identify" or type = "track"', 'When an identify or track event arrives'],
  ['type = track or type = page', 'When a track or page event arrives'],
  [
    'type = "track" and (event = "Checkout Started" or event = "Cart Viewed")',
    'When a track event named Checkout Started or Cart Viewed arrives',
  ],
  ['type = "track" and event != "A" and event != "B"', 'When a track event other than A or B arrives'],
  [
    '\n type = "track"\n and event != "A" and event != "B" and event != "C" and event != "D" and event != "E"\n ',
    'When a track event other than A, B, C or one of 2 others arrives',
  ],
  ['type = "page" and properties.name = "Home"', 'When a page event whose properties.name is Home arrives'],
  [
    'type = "track" and properties.total >= 100 and userId != null',
    'When a track event whose properties.total is at least 100 and userId is set arrives',
  ],
  ['type = "track" and contains(event, "Order")', 'When a track event whose event contains Order arrives'],
  ["type = 'track' and !match(event, 'Test*')", 'When a track event whose event does not match Test* arrives'],
  ['type = "identify" or (type = "track" and event = "Signed Up")', 'When an identify event or a track event named Signed Up arrives'],
  ['type = "track" and (event = "A" or properties.b = 1)', null],
  ['type = "track", event = "Transaction Created"', null],
  ['type =', null],
  ['type = "track" and', null],
  ['(type = "track"', null],
  ['type = "tr', null],
  ['', null],
]

for (const [expression, sentence] of SENTENCES) {
  test(`${JSON.stringify(expression)} ${sentence === null ? 'has no sentence' : `reads: ${sentence}`}`, () => {
    assert.equal(subscribeSentence(expression), sentence)
  })
}

test('types and event names are read from an expression and written to one', () => {
  for (const [expression, types, events] of [
    ['type = "track"', ['track'], []],
    ['event = "Signed Up"', [], ['Signed Up']],
    ['type = "track" or type = "page"', ['track', 'page'], []],
    ['type = "track" and (event = "A" or event = \'B "2"\')', ['track'], ['A', 'B "2"']],
  ] as const) {
    const simple = { types: [...types], events: [...events] }
    assert.deepEqual(simpleSubscribe(expression), simple)
    assert.equal(subscribeOf(simple), expression)
  }
  assert.equal(simpleSubscribe('type = "track" and properties.total > 1'), null)
  assert.equal(simpleSubscribe('type = "track" and event != "A"'), null)
  assert.equal(subscribeOf({ types: [], events: [] }), '')
})
