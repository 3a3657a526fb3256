/**
 * The import table of docs/design.md, section 13: which folder of lib may import which.
 * A folder may always import itself; whatever is not listed is refused.
 */
const table = {
  core: [],
  time: ['core'],
  state: ['core', 'time'],
  operators: ['core', 'time', 'state'],
  topology: ['core', 'time', 'state', 'operators'],
  plan: ['core', 'time', 'state', 'operators', 'topology'],
  runtime: ['core', 'time', 'state', 'operators', 'topology', 'plan'],
  emulator: ['core'],
  aws: ['core', 'time', 'state', 'operators', 'topology', 'plan', 'runtime'],
  cdk: ['core', 'topology', 'plan'],
  local: ['core', 'time', 'state', 'operators', 'topology', 'plan', 'runtime', 'emulator', 'aws'],
  testing: ['core', 'time', 'state', 'operators', 'topology', 'plan', 'runtime', 'emulator'],
}

const folderRules = Object.entries(table).map(([folder, allowed]) => ({
  name: `lib/${folder} imports only ${allowed.length > 0 ? allowed.join(', ') : 'itself'}`,
  severity: 'error',
  from: { path: `^lib/${folder}/` },
  to: { path: '^(lib|bin|functions|test|bench)/', pathNot: `^lib/(${[folder, ...allowed].join('|')})/` },
}))

/** Packages that only one folder may know. */
const packages = [
  {
    name: 'the AWS SDK stays in lib/aws and lib/local',
    from: { path: '^lib/', pathNot: '^lib/(aws|local)/' },
    to: { path: 'node_modules/@(aws-sdk|smithy)/' },
  },
  {
    name: 'aws-cdk-lib stays in lib/cdk',
    from: { path: '^lib/', pathNot: '^lib/cdk/' },
    to: { path: 'node_modules/(aws-cdk-lib|constructs)/' },
  },
]

module.exports = {
  forbidden: [
    { name: 'no cycles', severity: 'error', from: {}, to: { circular: true } },
    // `aws-lambda` has types only, in @types/aws-lambda.
    {
      name: 'no import that cannot be found',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true, pathNot: '^aws-lambda$' },
    },
    ...folderRules,
    ...packages.map((rule) => ({ severity: 'error', ...rule })),
    {
      name: 'functions import the public index of lib only',
      severity: 'error',
      from: { path: '^functions/' },
      to: { path: '^lib/', pathNot: '^lib/(index|middy|[a-z]+/index)\\.ts$' },
    },
    {
      name: 'lib never imports tests, benchmarks, functions or bin',
      severity: 'error',
      from: { path: '^lib/' },
      to: { path: '^(test|bench|bin|functions)/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    // Files that tests copy elsewhere: they import the built package.
    exclude: { path: '^test/.*/fixtures/' },
    parser: 'swc',
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
      extensions: ['.ts', '.js', '.json', '.cjs', '.mjs'],
    },
  },
}
