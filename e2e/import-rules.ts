// Who may import whom, as one table, and the checks of it: direction, and cycles between files and between folders. Works on texts, so that a test can
// give it made-up files. A file is named by its package and its path in src: `server/store/store.ts`.

import { posix } from 'node:path'

export type Sources = ReadonlyMap<string, string>

interface Import {
  specifier: string
  typeOnly: boolean
}

interface Rule {
  files: RegExp
  /** A workspace package, npm package or builtin by its specifier; a file of the same package by its name. */
  may: RegExp[]
  /** What may be imported as types alone. */
  mayTypes?: RegExp[]
}

const STAGES = ['ingest', 'routing', 'delivery', 'control', 'replaying', 'alerts', 'oauth', 'observe', 'pages']
/** Folders that every stage may import from. */
const SHARED_FOLDERS = [
  'api',
  'api/resources',
  'api/settings',
  'destinations',
  'destinations/integration',
  'destinations/port',
  'destinations/settings',
  'destinations/subscribe',
  'destinations/warehouse',
  'destinations/webhook',
  'destinations/webhook/email',
  'destinations/webhook/shaping',
  'http',
  'logging',
  'model',
  'model/order',
  'outbound',
  'plans',
  'secrets',
  'timing',
]
/**
 * The folders of delivery/, with the others that each may import from. What decides, in the main thread, and what carries out, in a sender thread
 * (`sender`) or in a host process (`host`), know each other only by what they say to each other (`link`). Previews carry out in the main thread.
 * Only the files in delivery/ itself connect them.
 */
const DELIVERY: Record<string, string[]> = {
  link: [],
  events: ['link'],
  shipments: ['link'],
  supervision: ['link'],
  recording: ['events', 'link', 'shipments'],
  lanes: ['events', 'link', 'recording', 'shipments', 'supervision'],
  sender: ['link'],
  host: ['link', 'sender'],
  loader: ['link', 'sender'],
  previews: ['link', 'sender', 'supervision'],
}
const ADAPTERS = ['sqlite', 'postgres']
/** Folders of the store that both adapters may import from: the port, the logic of each topic, how values are written in columns. */
const TOPICS = ['port', 'configuration', 'deletions', 'delivery', 'encoding', 'history', 'order-keys', 'ordering', 'quarantine', 'replays']

const builtin = /^node:/
/** What the server knows of the integrations package, which may not be installed. */
const catalog = /^@switchyard\/integrations\/catalog$/
/** The types of the warehouse package, whose code a loader process loads from where it is installed. */
const warehouse = /^@switchyard\/warehouse(\/(sql|engines))?$/
const protocol = /^@switchyard\/protocol$/
const webhook = /^@switchyard\/webhook$/
/** Files that every stage may import: those in the root of the server (config, errors, …) and in SHARED_FOLDERS. Not app.ts and cli.ts, which import the stages. */
const serverRoot = new RegExp(`^server/(?!app\\.ts|cli\\.ts)((${SHARED_FOLDERS.join('|')})/)?[^/]+\\.ts$`)
const storePort = /^server\/store\/(store|port\/[^/]+)\.ts$/
const server = [builtin, protocol, webhook, serverRoot]

/** What a stage may import in addition: packages from npm, or single files of another stage. */
const STAGE_PACKAGES: Record<string, RegExp[]> = {
  ingest: [/^fastify$/],
  delivery: [/^undici$/, /^ipaddr\.js$/, /^nodemailer\/lib\//, /^@jitl\/quickjs-wasmfile-release-sync\//],
  // oauth/ uses the public keys, so it alone says which keys are accepted. Likewise, ingest/ applies the privacy rules, observe/ writes the
  // documents of the event catalogue, and alerts/ has the table of its rules.
  control: [
    /^fastify$/,
    /^server\/oauth\/keys\.ts$/,
    /^server\/ingest\/privacy\/[^/]+\.ts$/,
    /^server\/observe\/(event-catalog\/event-(documents|properties)|violations\/violation-documents)\.ts$/,
    /^server\/alerts\/(alert-settings|rules\/rules)\.ts$/,
  ],
  oauth: [/^fastify$/, /^jose$/],
  observe: [/^fastify$/, /^prom-client$/],
  pages: [/^fastify$/],
}

/**
 * Files of other stages from which a stage may import types, but no code. In these files a stage declares the types that it shares,
 * so that no other stage keeps a copy. The functions themselves are still handed in by app.ts.
 */
const STAGE_TYPES: Record<string, RegExp[]> = {
  // The code is loaded by a host process, from where the package is installed.
  delivery: [/^@switchyard\/integrations\/runner$/],
  control: [
    catalog,
    /^server\/delivery\/(delivery|sender\/http\/dial-check|sender\/transforming\/transformer)\.ts$/,
    /^server\/observe\/live\.ts$/,
    /^server\/replaying\/archive-feed\.ts$/,
    /^server\/alerts\/(alerts|incidents|rules\/rule)\.ts$/,
  ],
  replaying: [/^server\/ingest\/privacy\/privacy\.ts$/],
  alerts: [/^server\/ingest\/events\.ts$/],
  observe: [/^server\/(delivery\/events|ingest)\/events\.ts$/],
}

/** The first row that fits a file counts. A dependency from npm is allowed by naming it in a row. */
const RULES: Rule[] = [
  { files: /^protocol\//, may: [/^protocol\//] },
  { files: /^webhook\//, may: [/^webhook\//, builtin] },
  // The only package that contains Segment's integrations.
  { files: /^integrations\//, may: [/^integrations\//, protocol, builtin, /^@segment\/(action-destinations|actions-core)(\/|$)/] },
  // Knows nothing of the store. Only its engines and the SQL process import what they need from npm.
  {
    files: /^warehouse\//,
    may: [/^warehouse\//, protocol, builtin, /^hyparquet(-writer)?$/, /^aws4fetch$/, /^pg$/, /^@duckdb\/node-api$/],
  },
  // The build includes them in the published package.
  { files: /^node\/testing\/schema-compiler\.ts$/, may: [protocol, /^ajv\//, /^ajv-formats$/] },
  { files: /^node\/platform\//, may: [/^node\//, protocol, builtin] },
  { files: /^node\//, may: [/^node\/(?!platform\/)/, /^node\/platform\/platform\.ts$/, /^#platform$/, protocol] },
  { files: /^server\/(app\.ts$|installation\/)/, may: [...server, /^server\//, /^fastify$/], mayTypes: [warehouse] },
  { files: /^server\/cli\.ts$/, may: [...server, /^server\/commands\//] },
  {
    files: /^server\/commands\//,
    mayTypes: [warehouse],
    may: [
      ...server,
      /^server\/commands\//,
      /^server\/(app|installation\/(command-form|listening|maintenance|install-integrations|integrations-catalog|integrations-package|processes\/[^/]+))\.ts$/,
      /^@switchyard\/node$/,
      /^yaml$/,
      /^undici$/,
    ],
  },
  // Moves one store into the other, so it may import both adapters. Only installation/ may import it.
  { files: /^server\/store-migration\//, may: [...server, /^server\/store-migration\//, /^server\/store\//] },
  ...Object.entries(DELIVERY).map(([folder, others]) => ({
    files: new RegExp(`^server/delivery/${folder}/`),
    may: [
      ...server,
      storePort,
      new RegExp(`^server/delivery/(${[folder, ...others].join('|')})/`),
      ...(folder === 'sender' ? (STAGE_PACKAGES['delivery'] ?? []) : []),
    ],
    mayTypes: [
      ...(folder === 'host' ? (STAGE_TYPES['delivery'] ?? []) : []),
      ...(['link', 'loader', 'supervision'].includes(folder) ? [warehouse] : []),
    ],
  })),
  // The identity provider. Loaded only with single sign-on.
  {
    files: /^server\/control\/access\/people\//,
    may: [...server, storePort, /^server\/control\/access\/people\//, /^jose$/, /^openid-client$/],
  },
  ...STAGES.map((stage) => ({
    files: new RegExp(`^server/${stage}/`),
    may: [...server, storePort, new RegExp(`^server/${stage}/`), ...(STAGE_PACKAGES[stage] ?? [])],
    mayTypes: [...(STAGE_TYPES[stage] ?? []), ...(stage === 'control' ? [warehouse] : [])],
  })),
  ...ADAPTERS.map((adapter) => ({
    files: new RegExp(`^server/store/${adapter}\\b`),
    may: [
      ...server,
      new RegExp(`^server/store/((${TOPICS.join('|')})/)?[^/]+\\.ts$`),
      new RegExp(`^server/store/${adapter}/`),
      ...(adapter === 'postgres' ? [/^pg$/] : []),
    ],
  })),
  { files: /^server\/store\/port\/warehouse-tables\.ts$/, may: [...server, /^server\/store\/port\//], mayTypes: [warehouse] },
  { files: /^server\/store\//, may: [...server, new RegExp(`^server/store/(?!${ADAPTERS.join('\\b|')}\\b)`)] },
  { files: /^server\/logging\/log\.ts$/, may: [...server, /^pino$/] },
  // The address of a database is checked with the settings, before anything is opened.
  { files: /^server\/config\.ts$/, may: [...server, /^server\/store\/postgres\/session\/address\.ts$/] },
  { files: /^server\/(api\/(configuration-export|settings\/role-rules)|plans\/plan-file)\.ts$/, may: [...server, /^yaml$/] },
  { files: /^server\/plans\/plan-schema-compiler\.ts$/, may: [...server, /^ajv\//, /^ajv-formats$/] },
  // What concerns every request, whatever stage it is for.
  { files: /^server\/http\/(close-server|connections|readiness)\.ts$/, may: [...server, /^fastify$/] },
  { files: /^server\/destinations\/subscribe\//, may: [...server, /^@segment\/destination-subscriptions$/] },
  // They know the model, but not the store, which uses them.
  { files: serverRoot, may: [...server], mayTypes: [catalog, warehouse] },
  // The editor is large: everything else loads it lazily, through code-editor.tsx.
  {
    files: /^dashboard\/components\/code-mirror\.tsx$/,
    may: [/^dashboard\//, /^react$/, /^@codemirror\//, /^@lezer\/highlight$/],
  },
  // So is the YAML library.
  { files: /^dashboard\/pages\/plans\/plan-yaml\.ts$/, may: [/^dashboard\//, /^yaml$/] },
  {
    files: /^dashboard\//,
    may: [/^dashboard\//, /^react(-dom)?(\/|$)/, /^@mantine\//, /^@tanstack\//, /^wouter(\/|$)/, /^@fontsource-variable\/inter\//],
    mayTypes: [protocol],
  },
]

/** Imports that the table does not allow, as sentences. */
export function forbiddenImports(sources: Sources): string[] {
  const problems: string[] = []
  for (const [file, text] of sources) {
    const rule = RULES.find(({ files }) => files.test(file))
    if (!rule) problems.push(`${file} has no rule`)
    for (const { specifier, typeOnly } of importsOf(text)) {
      const target = specifier.startsWith('.') ? posix.join(posix.dirname(file), specifier) : specifier
      const allowed = [...(rule?.may ?? []), ...(typeOnly ? (rule?.mayTypes ?? []) : [])]
      if (rule && !allowed.some((pattern) => pattern.test(target))) problems.push(`${file} must not import ${target}`)
    }
  }
  return problems
}

/** The shortest way round from each file that imports itself through others, types included: `a → b → a`. */
export function importCycles(sources: Sources): string[] {
  return cycles(importTargets(sources))
}

/**
 * The same between folders: two folders whose files import each other, directly or through other folders, are not layers. A subfolder is a folder of its
 * own. A file in the root of a package stands for itself, because the root has both what starts the package and what all of it uses.
 */
export function folderCycles(sources: Sources): string[] {
  const layerOf = (file: string): string => (posix.dirname(file).includes('/') ? posix.dirname(file) : file)
  const targets = new Map<string, Set<string>>()
  for (const [file, imported] of importTargets(sources)) {
    const layer = layerOf(file)
    const others = targets.get(layer) ?? new Set()
    for (const target of imported) if (sources.has(target) && layerOf(target) !== layer) others.add(layerOf(target))
    targets.set(layer, others)
  }
  return cycles(targets)
}

/** The files that each file imports. */
function importTargets(sources: Sources): Map<string, string[]> {
  const targets = new Map<string, string[]>()
  for (const [file, text] of sources) {
    const found = importsOf(text).flatMap(({ specifier }) => {
      if (specifier === '#platform') return ['node/platform/node.ts', 'node/platform/web.ts']
      return specifier.startsWith('.') ? [posix.join(posix.dirname(file), specifier)] : []
    })
    targets.set(file, found)
  }
  return targets
}

function cycles(targets: ReadonlyMap<string, Iterable<string>>): string[] {
  return [...targets.keys()].flatMap((start) => {
    const cameFrom = new Map<string, string>()
    const queue = [start]
    for (const each of queue) {
      for (const next of targets.get(each) ?? []) {
        if (next === start) {
          const way = [start]
          for (let at: string | undefined = each; at !== undefined; at = cameFrom.get(at)) way.unshift(at)
          return [way.join(' → ')]
        }
        if (cameFrom.has(next)) continue
        cameFrom.set(next, each)
        queue.push(next)
      }
    }
    return []
  })
}

/** Static, dynamic and re-exporting imports. Text is enough: the formatter leaves one way to write them. */
export function importsOf(text: string): Import[] {
  const statements = text.matchAll(/^(?:import|export)\s+(type\s)?(?:[\w\s{},*$]*?from\s+)?'([^']+)'/gm)
  const calls = text.matchAll(/\bimport\(\s*'([^']+)'\s*\)/g)
  return [
    ...Array.from(statements, ([, type, specifier]) => ({ specifier: specifier as string, typeOnly: type !== undefined })),
    ...Array.from(calls, ([, specifier]) => ({ specifier: specifier as string, typeOnly: false })),
  ]
}
