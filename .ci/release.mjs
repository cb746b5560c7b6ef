/**
 * `npm run release -- 0.2.0`: checks the package (types, both module systems, size, what would be published), gives both
 * packages the version, keeps the figures of the benchmark, and makes the commit and the tag. Pushing the tag starts
 * .github/workflows/release.yml, which publishes with provenance. It stops while something that a release needs is missing.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

const manifests = ['package.json', 'examples/create/package.json']
const releases = 'spec/bench/releases.json'
const git = (...args) => execFileSync('git', args, { encoding: 'utf8' }).trim()
const read = (path) => JSON.parse(readFileSync(path, 'utf8'))

const [version] = process.argv.slice(2)
const stops = []
if (!/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(version ?? '')) stops.push('name the version: npm run release -- 0.2.0')
for (const path of manifests) {
  const manifest = read(path)
  for (const field of ['repository', 'bugs', 'homepage', 'license', 'description', 'publishConfig']) {
    if (!manifest[field])
      stops.push(`${path}: set "${field}"; npm shows it or publishes by it, and provenance compares "repository"`)
  }
}
const changelog = readFileSync('CHANGELOG.md', 'utf8')
const [, section] = changelog.split(`\n## ${version}\n`)
if (section === undefined) stops.push(`CHANGELOG.md: write a section "## ${version}"`)
else if (section.split('\n## ')[0].includes('Not released yet')) {
  stops.push(`CHANGELOG.md: say when ${version} was released, instead of "Not released yet"`)
}
const { machine, date, quick, sections } = read('spec/bench/figures.json')
if (quick) stops.push('spec/bench/figures.json: keep the figures of a whole run, npm run bench -- --save')
if (git('status', '--porcelain') !== '') stops.push('commit or remove your changes')

if (stops.length > 0) {
  console.error(['no release:', ...stops.map((stop) => `- ${stop}`)].join('\n'))
  process.exit(1)
}

// what package.json has as `release:check`, without an account: nothing is published
if (read('package.json').scripts?.['release:check'] !== undefined) {
  execFileSync('npm', ['run', '--silent', 'release:check'], { stdio: 'inherit' })
}

for (const path of manifests) writeFileSync(path, `${JSON.stringify({ ...read(path), version }, undefined, 2)}\n`)
// `npm run bench -- --against release` compares with the last of them
const rowsOf = ({ title, rows }) => [title, Object.fromEntries(rows.map(({ name, value }) => [name, value.value]))]
const figures = { machine, date, ...Object.fromEntries(sections.map(rowsOf)) }
const released = [...read(releases), { version, commit: git('rev-parse', 'HEAD'), figures }]
writeFileSync(releases, `${JSON.stringify(released, undefined, 2)}\n`)
execFileSync('npm', ['install', '--package-lock-only', '--ignore-scripts'], { stdio: 'inherit' })
git('add', ...manifests, releases, 'package-lock.json')
// the first version is in package.json already
git('commit', '--allow-empty', '-m', `release: ${version}`)
git('tag', '-a', `v${version}`, '-m', `v${version}`)
console.log(`v${version} is tagged. Publish it: git push --follow-tags`)
