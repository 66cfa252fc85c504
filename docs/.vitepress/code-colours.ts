// Replaces the style attributes that Shiki writes for the colours of code with classes, because the service's content security policy
// forbids style attributes. A theme has a few dozen colours; each gets a class that sets the variable that the site's stylesheet reads.

import { bundledThemes, type ShikiTransformer } from 'shiki'

export const THEMES = { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' } as const

/** The module that is imported as `import 'virtual:code-colours.css'`. */
export const STYLESHEET = 'virtual:code-colours.css'

const classOf = (variable: string, value: string): string => `c-${`${variable}-${value}`.replaceAll(/[^a-z\d]+/gi, '-').toLowerCase()}`

export const coloursByClass: ShikiTransformer = {
  name: 'colours-by-class',
  tokens(lines) {
    for (const token of lines.flat()) {
      const style = token.htmlStyle as Record<string, string> | undefined
      if (style === undefined) continue
      const classes = Object.entries(style).map(([variable, value]) => classOf(variable.replace(/^--shiki-/, ''), value))
      token.htmlStyle = {}
      token.htmlAttrs = { ...token.htmlAttrs, class: classes.join(' ') }
    }
  },
  pre(node) {
    // Colours of the whole block are dropped: the site has its own.
    delete node.properties['style']
  },
}

export async function stylesheet(): Promise<string> {
  const rules = new Set<string>()
  for (const [scheme, name] of Object.entries(THEMES)) {
    const { default: theme } = await bundledThemes[name as (typeof THEMES)['light']]()
    const colours = [theme.fg, ...(theme.settings ?? theme.tokenColors ?? []).map(({ settings }) => settings.foreground)]
    colours.push(...Object.values(theme.colors ?? {}))
    for (const colour of colours) {
      if (colour === undefined || !/^#[\da-f]{3,8}$/i.test(colour)) continue
      rules.add(`.${classOf(scheme, colour)}{--shiki-${scheme}:${colour}}`)
    }
    for (const [variable, value] of [
      ['font-style', 'italic'],
      ['font-style', 'inherit'],
      ['font-weight', 'bold'],
      ['font-weight', 'inherit'],
      ['text-decoration', 'underline'],
      ['text-decoration', 'inherit'],
    ] as const)
      rules.add(`.${classOf(`${scheme}-${variable}`, value)}{--shiki-${scheme}-${variable}:${value}}`)
  }
  return [...rules].join('\n')
}
