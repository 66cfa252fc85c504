// What the page does by itself: the filter, copying, the address in its examples, and opening what a link points into.
// Plain JavaScript for browsers, as text, because it is put into the page; without it the page is complete all the same.

export const SCRIPT = `
(() => {
  const $ = (selector) => [...document.querySelectorAll(selector)]
  const said = document.getElementById('said')
  const menu = document.querySelector('.menu')
  const narrow = matchMedia('(max-width: 900px)')
  const fit = () => { menu.open = !narrow.matches }
  fit()
  narrow.addEventListener('change', fit)
  menu.addEventListener('click', (event) => { if (narrow.matches && event.target.closest('a')) menu.open = false })

  const given = document.documentElement.dataset.origin
  for (const code of $('code.copy')) {
    // Behind a proxy the service does not know how it is called from outside.
    if (location.protocol !== 'file:') code.textContent = code.textContent.replaceAll(given, location.origin)
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'copying'
    button.textContent = 'Copy'
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(code.textContent)
        button.textContent = 'Copied'
        said.textContent = 'Copied'
      } catch {
        getSelection().selectAllChildren(code)
        button.textContent = 'Press Ctrl+C'
      }
      setTimeout(() => { button.textContent = 'Copy'; said.textContent = '' }, 2000)
    })
    code.closest('figure').querySelector('figcaption').append(button)
  }

  const filter = document.getElementById('filter')
  const found = document.getElementById('found')
  filter.parentElement.hidden = false
  const operations = $('.operation[id]').map((section) => ({
    section,
    link: document.querySelector('[data-operation="' + section.id + '"]')?.closest('li'),
    text: (section.querySelector('.say').textContent + ' ' + section.id).toLowerCase(),
  }))
  filter.addEventListener('input', () => {
    const words = filter.value.toLowerCase().split(/\\s+/).filter(Boolean)
    let count = 0
    for (const { section, link, text } of operations) {
      const hidden = !words.every((word) => text.includes(word))
      section.hidden = hidden
      if (link) link.hidden = hidden
      if (!hidden) count += 1
    }
    for (const part of $('li.part')) {
      const entries = [...part.querySelectorAll('li')]
      if (entries.length > 0) part.hidden = entries.every((entry) => entry.hidden)
    }
    for (const chapter of $('.chapter')) {
      const own = [...chapter.querySelectorAll('.operation[id]')]
      if (own.length > 0) chapter.hidden = own.every((section) => section.hidden)
    }
    found.textContent = words.length === 0 ? '' : count === 1 ? '1 operation' : count + ' operations'
  })
  addEventListener('keydown', (event) => {
    if (event.key === '/' && !/^(input|textarea)$/i.test(event.target.tagName) && !event.ctrlKey && !event.metaKey) {
      event.preventDefault()
      menu.open = true
      filter.focus()
    }
    if (event.key === 'Escape' && event.target === filter) {
      filter.value = ''
      filter.dispatchEvent(new Event('input'))
    }
  })

  const reveal = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)))
    if (!target) return
    if (target.closest('[hidden]')) { filter.value = ''; filter.dispatchEvent(new Event('input')) }
    for (let at = target; at; at = at.parentElement) if (at.tagName === 'DETAILS') at.open = true
    target.scrollIntoView()
  }
  addEventListener('hashchange', reveal)
  if (location.hash) reveal()

  const links = new Map($('[data-operation]').map((link) => [link.dataset.operation, link]))
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const link = links.get(target.id)
      if (!link) continue
      if (isIntersecting) link.setAttribute('aria-current', 'true')
      else link.removeAttribute('aria-current')
    }
  }, { rootMargin: '-20% 0px -70% 0px' })
  for (const { section } of operations) watch.observe(section)

  let opened = []
  addEventListener('beforeprint', () => { opened = $('main details:not([open])'); for (const one of opened) one.open = true })
  addEventListener('afterprint', () => { for (const one of opened) one.open = false })
})()
`
