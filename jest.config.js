/** Tests run as CommonJS, as the tests of a fresh CDK app do. */
export default {
  testEnvironment: 'node',
  // Generous, as machines that build are busy: a test that hangs still ends.
  testTimeout: 120_000,
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  reporters: ['default', '<rootDir>/.ci/closing-line.cjs'],
  // Middy exports only for `import`, so it is found by path and made CommonJS like our own files; so is the client of Kafka.
  moduleNameMapper: { '^@middy/(core|util)$': '<rootDir>/node_modules/@middy/$1/index.js' },
  transformIgnorePatterns: ['/node_modules/(?!(@middy|@platformatic)/)'],
  transform: {
    '(\\.ts|/(@middy|@platformatic)/.+\\.js)$': [
      '@swc/jest',
      {
        jsc: { parser: { syntax: 'typescript' }, target: 'es2023' },
        module: { type: 'commonjs' },
        sourceMaps: 'inline',
      },
    ],
  },
}
