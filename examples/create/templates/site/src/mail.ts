/** Mails: by the server SMTP_URL, and without one into the log. */
import type { Send } from './parts.js'
import type { Settings } from './settings.js'

export const mailer = async ({ smtpUrl, from }: Settings): Promise<Send> => {
  if (smtpUrl === undefined) return async (to, subject, text) => console.log(`Mail to ${to}: ${subject}\n${text}\n`)
  const { createTransport } = await import('nodemailer')
  const transport = createTransport(smtpUrl)
  return (to, subject, text) => transport.sendMail({ from, to, subject, text })
}
