import assert from 'node:assert/strict'
import test from 'node:test'
import { createAddressGuard, parseAddressRanges } from './address-guard.ts'

const strict = createAddressGuard({ allowPrivate: false, allow: [] })
const open = createAddressGuard({ allowPrivate: true, allow: [] })

const PUBLIC = [
  '8.8.8.8',
  '1.1.1.1',
  '93.184.216.34',
  '172.15.0.1',
  '172.32.0.1',
  '100.63.0.1',
  '223.255.255.255',
  '2606:4700::1111',
  '2a00::1',
]
const INTERNAL = {
  loopback: ['127.0.0.1', '127.255.255.255', '::1'],
  private: ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
  'unique-local': ['fc00::1', 'fd12:3456::1'],
  'carrier-grade NAT': ['100.64.0.1', '100.127.255.255'],
  documentation: ['192.0.2.1', '198.51.100.1', '203.0.113.1', '2001:db8::1', '3fff::1'],
  'reserved or special': ['240.0.0.1', '198.18.0.1', '192.0.0.1', 'fec0::1', '100::1', '2001:2::1', '4000::1', '5f00::1', '1::1'],
}
const NEVER = {
  unspecified: ['0.0.0.0', '0.1.2.3', '::'],
  multicast: ['224.0.0.1', '239.255.255.255', 'ff02::1'],
  broadcast: ['255.255.255.255'],
}
const METADATA = ['100.100.100.200', '168.63.129.16', 'fd00:ec2::254', 'fd20:ce::254', 'fd00:42::42']
const LINK_LOCAL = ['169.254.169.254', '169.254.170.2', '169.254.42.42', '169.254.1.1', 'fe80::1', 'fe80::a9fe:a9fe', 'febf::1']

test('public addresses are permitted', () => {
  for (const ip of PUBLIC) assert.equal(strict.permits(ip), true, ip)
})

for (const [kind, addresses] of Object.entries(INTERNAL)) {
  test(`${kind} addresses are refused, and permitted where private ones are allowed`, () => {
    for (const ip of addresses) {
      assert.equal(strict.permits(ip), false, ip)
      assert.equal(open.permits(ip), true, ip)
    }
  })
}

for (const [kind, addresses] of Object.entries(NEVER)) {
  test(`${kind} addresses are refused even where everything is allowed`, () => {
    const widest = createAddressGuard({ allowPrivate: true, allow: ['0.0.0.0/0', '::/0'] })
    for (const ip of addresses) for (const guard of [strict, open, widest]) assert.equal(guard.permits(ip), false, ip)
  })
}

test('link-local addresses and metadata services are refused unless their exact address is allowed', () => {
  const wide = createAddressGuard({ allowPrivate: true, allow: ['0.0.0.0/0', '::/0', '169.254.0.0/16', 'fe80::/10'] })
  for (const ip of [...METADATA, ...LINK_LOCAL]) {
    for (const guard of [strict, open, wide]) assert.equal(guard.permits(ip), false, ip)
    assert.equal(createAddressGuard({ allowPrivate: false, allow: [ip] }).permits(ip), true, ip)
  }
  assert.equal(open.permits('fe80::1%lo'), false)
})

test('an IPv4 address mapped into IPv6 is judged as that IPv4 address', () => {
  assert.equal(strict.permits('::ffff:8.8.8.8'), true)
  for (const ip of ['::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:10.0.0.1', '::ffff:169.254.169.254', '0:0:0:0:0:ffff:a00:1']) {
    assert.equal(strict.permits(ip), false, ip)
  }
  assert.equal(open.permits('::ffff:127.0.0.1'), true)
  assert.equal(open.permits('::ffff:169.254.169.254'), false)
  assert.equal(createAddressGuard({ allowPrivate: false, allow: ['10.0.0.0/8'] }).permits('::ffff:10.1.2.3'), true)
})

test('NAT64 is judged by the IPv4 address inside', () => {
  assert.equal(strict.permits('64:ff9b::8.8.8.8'), true)
  for (const ip of ['64:ff9b::10.0.0.1', '64:ff9b::127.0.0.1', '64:ff9b::169.254.169.254', '64:ff9b:1::8.8.8.8']) {
    assert.equal(strict.permits(ip), false, ip)
  }
  assert.equal(open.permits('64:ff9b::a9fe:a9fe'), false)
})

test('other IPv6 forms with an IPv4 address inside are refused, and never reach a metadata service', () => {
  const ofLoopback = ['::127.0.0.1', '::ffff:0:127.0.0.1', '2002:7f00:1::', '2001:0:808:808::80ff:fffe']
  const ofMetadata = ['::169.254.169.254', '::ffff:0:a9fe:a9fe', '2002:a9fe:a9fe::1', '2001:0:808:808::5601:5601', '2001:0:a9fe:a9fe::1']
  for (const ip of [...ofLoopback, ...ofMetadata, '2002:808:808::1', '::8.8.8.8']) assert.equal(strict.permits(ip), false, ip)
  for (const ip of ofMetadata) assert.equal(open.permits(ip), false, ip)
})

test('an address that is not in plain notation is blocked', () => {
  for (const text of [
    '',
    'example.com',
    'localhost',
    '127.1',
    '2130706433',
    '0x7f.0.0.1',
    '0177.0.0.1',
    '8.8.8',
    '[::1]',
    '8.8.8.8 ',
    '8.8.8.8/32',
  ]) {
    assert.equal(open.permits(text), false, text)
  }
})

test('hosts of URLs in odd notations come out as the address they mean, and are refused', () => {
  const odd = ['2130706433', '0x7f000001', '017700000001', '127.1', '0x7f.1', '127.0.0.1.', '①②⑦.0.0.1', '[::ffff:127.0.0.1]', '[0:0::1]']
  for (const host of odd) {
    const { hostname } = new URL(`http://${host}/`)
    assert.equal(strict.permits(hostname.replace(/^\[|\]$/g, '')), false, `${host} is ${hostname}`)
  }
  assert.equal(new URL('http://2852039166/').hostname, '169.254.169.254')
})

test('allowed ranges are permitted and their neighbours are not', () => {
  const guard = createAddressGuard({ allowPrivate: false, allow: ['10.1.0.0/16', 'fd00:1::/32', '192.168.7.7'] })
  for (const ip of ['10.1.0.0', '10.1.255.255', 'fd00:1::9', '192.168.7.7']) assert.equal(guard.permits(ip), true, ip)
  for (const ip of ['10.0.255.255', '10.2.0.0', 'fd00:2::9', '192.168.7.8', '127.0.0.1']) assert.equal(guard.permits(ip), false, ip)
})

test('a range that cannot be read is refused with its text', () => {
  const wrong = [
    '',
    '10.0.0.0/33',
    'fd00::/129',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '10.0.0.0/-1',
    '10.0.0.0/0x8',
    'example.com/8',
    '10/8',
    'fe80::1%lo/64',
  ]
  for (const text of wrong) {
    assert.throws(
      () => parseAddressRanges(['10.0.0.0/8', text]),
      (error: unknown) => error instanceof RangeError && error.message.startsWith(`"${text}" is not an address range`),
      text,
    )
  }
})

test('a range with bits beyond its prefix is refused with both readings', () => {
  assert.throws(() => parseAddressRanges(['10.1.2.3/8']), { message: /"10\.1\.2\.3\/8" .* write 10\.0\.0\.0\/8, or 10\.1\.2\.3 / })
  assert.throws(() => parseAddressRanges(['fd00::1/8']), { message: /write fd00::\/8, or fd00::1 / })
})

test('an IPv4 range written as IPv6 is rejected, because no address would ever match it', () => {
  assert.throws(() => parseAddressRanges(['::ffff:10.0.0.0/104']), { message: /write it as IPv4/ })
})
