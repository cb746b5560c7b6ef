/** What the pages and the mails say, in English and German. A name is that of a page, a field, a button or a failure. */
import type { Context } from 'koa'

const texts: Record<string, readonly [en: string, de: string]> = {
  // pages
  'password.begin': ['Sign in', 'Anmelden'],
  'code.answer': ['One more step', 'Noch ein Schritt'],
  'reset.begin': ['Sign up, or set a new password', 'Registrieren oder Passwort neu setzen'],
  'reset.beginText': ['We send you a link that sets your password.', 'Wir senden Ihnen einen Link, mit dem Sie Ihr Passwort setzen.'],
  'reset.answer': ['Check your mail', 'Sehen Sie in Ihre Post'],
  'reset.link': ['Set your password', 'Passwort setzen'],
  'reset.linkText': ['At least 15 characters, such as four words.', 'Mindestens 15 Zeichen, zum Beispiel vier Wörter.'],
  'reset.done': ['The password is set', 'Das Passwort ist gesetzt'],
  'verify.begin': ['Change your address', 'Adresse ändern'],
  'verify.beginText': ['We send a link to the new address.', 'Wir senden einen Link an die neue Adresse.'],
  'verify.answer': ['Check your mail', 'Sehen Sie in Ihre Post'],
  'verify.link': ['Your new address', 'Ihre neue Adresse'],
  'verify.linkText': ['Confirm that this mail came to you.', 'Bestätigen Sie, dass diese Mail bei Ihnen ankam.'],
  'verify.done': ['Your address is changed', 'Ihre Adresse ist geändert'],
  welcome: ['Welcome', 'Willkommen'],
  welcomeText: ['A site with accounts, built with Koa.', 'Eine Seite mit Konten, gebaut mit Koa.'],
  account: ['Your account', 'Ihr Konto'],
  admin: ['All accounts', 'Alle Konten'],
  changePassword: ['Change your password', 'Passwort ändern'],
  changePasswordText: ['At least 15 characters, such as four words. Everywhere else you are signed out.', 'Mindestens 15 Zeichen, zum Beispiel vier Wörter. Überall sonst werden Sie abgemeldet.'],
  deleteAccount: ['Delete your account', 'Konto löschen'],
  deleteText: ['It is deleted for good, with its passkeys and devices.', 'Es wird endgültig gelöscht, mit Passkeys und Geräten.'],
  addApp: ['Set up an authenticator app', 'Authenticator-App einrichten'],
  scan: ['Scan this with your app, then type the code that it shows.', 'Scannen Sie dies mit Ihrer App und geben Sie deren Code ein.'],
  recovery: ['Recovery codes', 'Wiederherstellungs\u00adcodes'],
  recoveryText: ['Keep them in a safe place. Each signs you in once, without the app.', 'Bewahren Sie sie sicher auf. Jeder meldet Sie einmal an, ohne die App.'],
  connectDevice: ['Connect an app or a program', 'App oder Programm verbinden'], // devices
  connectDeviceText: ['Type the code that it shows. It then may do what you may.', 'Geben Sie den Code ein, den es zeigt. Es darf dann, was Sie dürfen.'], // devices
  // fields
  email: ['E-mail address', 'E-Mail-Adresse'],
  address: ['E-mail address', 'E-Mail-Adresse'],
  'current-password': ['Password', 'Passwort'],
  current: ['Present password', 'Bisheriges Passwort'],
  'new-password': ['New password', 'Neues Passwort'],
  'one-time-code': ['Code of your app, or a recovery code', 'Code Ihrer App oder ein Wiederherstellungscode'],
  userCode: ['Code', 'Code'], // devices
  appCode: ['Code of your app', 'Code Ihrer App'],
  remember: ['Stay signed in for 30 days', '30 Tage angemeldet bleiben'],
  // buttons and links
  send: ['Continue', 'Weiter'],
  signIn: ['Sign in', 'Anmelden'],
  signUp: ['Sign up', 'Registrieren'],
  newHere: ['New here, or password forgotten?', 'Neu hier oder Passwort vergessen?'],
  signOut: ['Sign out', 'Abmelden'],
  passkey: ['Sign in with a passkey', 'Mit Passkey anmelden'],
  change: ['Change', 'Ändern'],
  setUp: ['Set up', 'Einrichten'],
  remove: ['Remove', 'Entfernen'],
  newCodes: ['New codes', 'Neue Codes'],
  addPasskey: ['Add a passkey', 'Passkey hinzufügen'],
  end: ['Sign out', 'Abmelden'],
  everywhere: ['Sign out everywhere', 'Überall abmelden'],
  delete: ['Delete', 'Löschen'],
  deleteForGood: ['Delete for good', 'Endgültig löschen'],
  connect: ['Connect', 'Verbinden'], // devices
  home: ['To the start page', 'Zur Startseite'],
  copy: ['Copy', 'Kopieren'],
  back: ['Back to your account', 'Zurück zum Konto'],
  // the account
  ways: ['Signing in', 'Anmeldung'],
  password: ['Password', 'Passwort'],
  app: ['Authenticator app', 'Authenticator-App'],
  on: ['On', 'Ein'],
  off: ['Off', 'Aus'],
  left: ['left', 'übrig'],
  passkeys: ['Passkeys', 'Passkeys'],
  noPasskeys: ['Sign in with your fingerprint, your face or a PIN.', 'Melden Sie sich mit Fingerabdruck, Gesicht oder PIN an.'],
  added: ['Added', 'Hinzugefügt'],
  lastUsed: ['last used', 'zuletzt benutzt'],
  devices: ['Where you are signed in', 'Wo Sie angemeldet sind'],
  here: ['this browser', 'dieser Browser'],
  program: ['App or program', 'App oder Programm'],
  browser: ['Browser', 'Browser'],
  // what was done
  sent: ['We have sent you a link. It is good for a few minutes.', 'Wir haben Ihnen einen Link gesendet. Er gilt einige Minuten.'],
  passwordSet: ['Your password is changed.', 'Ihr Passwort ist geändert.'],
  removed: ['The app is removed.', 'Die App ist entfernt.'],
  ended: ['That device is signed out.', 'Dieses Gerät ist abgemeldet.'],
  passkeyAdded: ['The passkey is added.', 'Der Passkey ist hinzugefügt.'],
  passkeyRemoved: ['The passkey is removed.', 'Der Passkey ist entfernt.'],
  deleted: ['Your account is deleted.', 'Ihr Konto ist gelöscht.'],
  deviceAllowed: ['The program is signed in.', 'Das Programm ist angemeldet.'], // devices
  // what was refused
  failed: ['That did not work', 'Das ging nicht'],
  other: ['Begin again.', 'Beginnen Sie von vorn.'],
  wrong: ['That was not right. Try again.', 'Das stimmte nicht. Versuchen Sie es noch einmal.'],
  short: ['That is too short: at least 15 characters, such as four words.', 'Das ist zu kurz: mindestens 15 Zeichen, zum Beispiel vier Wörter.'],
  weak: ['Choose a password.', 'Wählen Sie ein Passwort.'],
  long: ['That is too long: at most 128 characters.', 'Das ist zu lang: höchstens 128 Zeichen.'],
  common: ['Many people use this password. Choose another one.', 'Dieses Passwort benutzen viele. Wählen Sie ein anderes.'],
  context: ['It contains your address, or the name of this site.', 'Es enthält Ihre Adresse oder den Namen dieser Seite.'],
  breached: ['This password has leaked elsewhere. Choose another one.', 'Dieses Passwort ist anderswo bekannt geworden. Wählen Sie ein anderes.'],
  malformed: ['Fill in each field.', 'Füllen Sie jedes Feld aus.'],
  throttled: ['Too many attempts. Try again later.', 'Zu viele Versuche. Versuchen Sie es später noch einmal.'],
  unknown: ['This link was used already, or is too old.', 'Dieser Link wurde schon benutzt oder ist zu alt.'],
  insufficient: ['This page is not for you.', 'Diese Seite ist nicht für Sie.'],
  notFound: ['There is no such page.', 'Diese Seite gibt es nicht.'],
  unavailable: ['Try again in a few seconds.', 'Versuchen Sie es in einigen Sekunden noch einmal.'],
} // prettier-ignore

export const languageOf = (ctx: Context): 'en' | 'de' => (ctx.acceptsLanguages('en', 'de') === 'de' ? 'de' : 'en')

/** The first of these texts that exists, in the language of the request. */
export const say = (ctx: Context, ...names: ReadonlyArray<string>): string => {
  const found = names.map((name) => Object.hasOwn(texts, name) && texts[name]).find((text) => text)
  return (found && found[languageOf(ctx) === 'de' ? 1 : 0]) || ''
}

/** Subjects and texts. Nobody knows the language of an address, so they are in both. */
export const mails = {
  password: (link: string) =>
    ['Your password · Ihr Passwort', `Set your password · Setzen Sie Ihr Passwort:\n${link}`] as const,
  passwordChanged: [
    'Your password was changed · Ihr Passwort wurde geändert',
    'If it was not you, set a new one · Wenn Sie das nicht waren, setzen Sie ein neues.',
  ] as const,
  address: (link: string) =>
    ['Your address · Ihre Adresse', `Confirm your new address · Bestätigen Sie Ihre neue Adresse:\n${link}`] as const,
  addressChanged: (to: string) =>
    ['Your address was changed · Ihre Adresse wurde geändert', `The new one is · Die neue ist: ${to}`] as const,
}
