import assert from 'node:assert/strict'
import { test } from 'node:test'
import { linkedParts, plainText } from './markdown-links.ts'

test('a link of Markdown and a bare address become links; a full stop after an address is not part of it', () => {
  assert.deepEqual(linkedParts('Find it [here](https://a.example/x), or at https://b.example/y. **Required**.'), [
    { text: 'Find it ', href: null },
    { text: 'here', href: 'https://a.example/x' },
    { text: ', or at ', href: null },
    { text: 'https://b.example/y', href: 'https://b.example/y' },
    { text: '. Required.', href: null },
  ])
})

test('nothing but web addresses becomes a link', () => {
  for (const text of ['[a](javascript:alert(1))', '[a](data:text/html,x)', '[a](/relative)', '[a](vbscript:x)']) {
    assert.ok(
      linkedParts(text).every(({ href }) => href === null),
      text,
    )
  }
})

test('HTML is not interpreted', () => {
  assert.equal(plainText('One<br/>two <script>x</script> `code`'), 'One two x code')
  assert.equal(plainText('less < than 3 > 2'), 'less < than 3 > 2')
})
