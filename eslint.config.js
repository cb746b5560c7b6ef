import tseslint from 'typescript-eslint'

export default tseslint.config(
  {
    ignores: [
      'dist/',
      'docs/',
      'coverage/',
      'spec/.generated/',
      'spec/types/fixtures/',
      'spec/apps/',
      'spec/bench/',
      'spec/peers/',
      // a package of its own, with templates of applications; a spec compiles and runs them
      'examples/create/',
      // programs of plain JavaScript that specs start
      'spec/support/sites/traced/',
      'spec/support/sites/*.mjs',
      'spec/data/*.mjs',
      '.ci/',
      // scripts of pages
      'examples/shop/public/',
    ],
  },
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: { allowDefaultProject: ['eslint.config.js'] } } },
    rules: {
      'object-shorthand': ['error', 'properties'],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      // markers and empty interfaces that give a union member its name
      '@typescript-eslint/no-empty-object-type': 'off',
      // `Function` is what a value that is only inspected is
      '@typescript-eslint/no-unsafe-function-type': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      // Koa types its context, and the language `Object.create`, as any
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/unbound-method': 'off',
      'no-control-regex': 'off',
    },
  },
  {
    files: ['src/**/*.ts'],
    rules: { 'max-lines': ['error', 450], 'max-lines-per-function': ['error', 60] },
  },
  {
    // a script for browsers, served as it is
    files: ['src/**/*.js'],
    ...tseslint.configs.disableTypeChecked,
    languageOptions: {
      sourceType: 'script',
      parserOptions: { projectService: false },
      globals: { document: 'readonly', location: 'readonly', setTimeout: 'readonly', window: 'readonly' },
    },
    rules: { ...tseslint.configs.disableTypeChecked.rules, 'no-undef': 'error', 'no-unused-vars': 'error' },
  },
  {
    files: ['spec/**', 'examples/**'],
    rules: {
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/prefer-promise-reject-errors': 'off',
      '@typescript-eslint/only-throw-error': 'off',
    },
  },
)
