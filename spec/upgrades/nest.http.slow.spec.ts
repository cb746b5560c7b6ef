/** NestJS, guarded by the helper of the guide: each decision and each refusal is that of Koa. Its packages are those of `nest/package.json`. */
/* eslint-disable @typescript-eslint/no-unsafe-call, @typescript-eslint/no-unsafe-member-access -- these packages have no types here */
import { execFileSync } from 'node:child_process'
import { copyFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Server, ServerResponse } from 'node:http'
import { join } from 'node:path'
import Koa from 'koa'
import * as root from 'koa-with-auth'
import * as upgrades from 'koa-with-auth/upgrades'
import ts from 'typescript'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ownOptions, repository, typecheck } from '../support/projects/typecheck.js'
import { madeOnce } from '../support/runs/madeOnce.js'
import { describeDecisions, describeHostile } from '../support/servers/frameworkCases.js'
import { principalOf, started, type Auth, type Framework } from '../support/servers/otherFrameworks.js'
import { fencesOf } from '../support/papers/docExamples.js'

/** Anything of a package that has no types here. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- these packages are not installed where types are checked
type Package = any

let folder: string
let load: NodeJS.Require
/** What the program of the guide exports. */
let program: { readonly forNest: (app: Koa, a: Auth) => object; readonly Site: object }

const code = fencesOf('examples/guides/other-frameworks.md', 'typescript')[0]?.code ?? ''
const decorated: ts.CompilerOptions = { experimentalDecorators: true, emitDecoratorMetadata: true }

beforeAll(() => {
  folder = madeOnce('nest', (made) => {
    for (const name of ['package.json', 'package-lock.json'])
      copyFileSync(`${repository}spec/upgrades/nest/${name}`, join(made, name))
    execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: made, stdio: 'pipe' })
  })
  load = createRequire(join(folder, 'package.json'))
  load('reflect-metadata')
  load('@nestjs/common').Logger.overrideLogger(false)
  const { outputText } = ts.transpileModule(code, {
    compilerOptions: { ...decorated, module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 },
  })
  const own: Readonly<Record<string, unknown>> = {
    koa: { default: Koa, __esModule: true },
    'koa-with-auth': root,
    'koa-with-auth/upgrades': upgrades,
  }
  const exported = {} as typeof program
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- the guide's own code
  ;(new Function('exports', 'require', outputText) as (...values: unknown[]) => void)(
    exported,
    (name: string): unknown => own[name] ?? load(name),
  )
  program = exported
})

const served = async (site: object): Promise<Server> => {
  const app: Package = await load('@nestjs/core').NestFactory.create(site, { bodyParser: false })
  await app.init()
  return app.getHttpServer()
}

/** A controller with these operations, as decorators would write it. */
const ofNest: Framework = {
  name: 'NestJS 11',
  make: async (app, operations, before) => {
    const { Controller, Get, HttpCode, Module, Req, RequestMapping, Res, UseGuards, RequestMethod } =
      load('@nestjs/common')
    class Operations {}
    const { prototype } = Operations
    operations.forEach(({ method, path, guards, answer = principalOf }, index) => {
      const name = `operation${index}`
      const value = (request: { auth: Parameters<typeof answer>[0] }, response: ServerResponse) =>
        answer(request.auth, response)
      const descriptor: PropertyDescriptor = { value, writable: true, configurable: true }
      Object.defineProperty(prototype, name, descriptor)
      Req()(prototype, name, 0)
      Res()(prototype, name, 1)
      HttpCode(200)(prototype, name, descriptor)
      UseGuards(...guards.map((a) => program.forNest(app, a)))(prototype, name, descriptor)
      const route = method === 'GET' ? Get(path) : RequestMapping({ path, method: RequestMethod[method] })
      route(prototype, name, descriptor)
    })
    Controller()(Operations)
    class Site {
      configure(consumer: Package) {
        const use = (_request: unknown, response: ServerResponse, next: () => void) => {
          for (const [name, value] of Object.entries(before ?? {})) response.setHeader(name, value)
          next()
        }
        consumer.apply(use).forRoutes(Operations)
      }
    }
    Module({ controllers: [Operations] })(Site)
    return served(Site)
  },
}

describe('the program of the guide', () => {
  it('compiles with the types of Nest', () => {
    const file = join(folder, 'program.ts')
    writeFileSync(file, code)
    const paths = Object.fromEntries(
      ['koa', 'express'].map((name) => [name, [`${repository}node_modules/@types/${name}/index.d.ts`]]),
    )
    const options = { ...ownOptions(), ...decorated, erasableSyntaxOnly: false, types: [] }
    expect(typecheck([file], { ...options, paths: { ...options.paths, ...paths } }, folder)).toEqual([])
  })

  it('answers with the principal, or refuses as Koa does', async () => {
    const { url, close } = await started(await served(program.Site))
    onTestFinished(close)
    const good = await fetch(`${url}/me`, { headers: { Authorization: 'Bearer supersecret' } })
    const answer = [good.status, good.headers.get('Cache-Control'), await good.json()]
    expect(answer).toEqual([200, 'private, no-store', { user: 'anna' }])
    const none = await fetch(`${url}/me`)
    const refused = [none.status, none.headers.get('WWW-Authenticate'), await none.json()]
    expect(refused).toMatchObject([401, 'Bearer realm="api"', { status: 401 }])
  })
})

describeHostile(ofNest)
describeDecisions(ofNest)
