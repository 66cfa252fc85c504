// The pages of the documentation that the search of the dashboard finds. scripts/reference.ts writes them to packages/dashboard/src/api/doc-pages.ts.

import { SECTIONS } from '../../docs/.vitepress/contents.ts'

export function docPages(): string {
  const rows = SECTIONS.flatMap(({ title: section, folder, pages }) =>
    pages.map(([name, title]) => `  ${JSON.stringify([`/docs/${folder}/${name}`, title, section])},`),
  )
  return [
    '// Written by scripts/reference.ts from the contents of the documentation (docs/.vitepress/contents.ts).',
    '',
    'export const DOC_PAGES: readonly (readonly [path: string, title: string, section: string])[] = [',
    ...rows.map((row) => row.replaceAll("'", "\\'").replaceAll('"', "'").replaceAll("','", "', '")),
    ']',
    '',
  ].join('\n')
}
