// The page of devices learns at once that this browser was signed out elsewhere: the stream ends with the session.
const listen = () => {
  const source = new EventSource('/live')
  source.addEventListener('error', async () => {
    source.close()
    const { status } = await fetch('/me', { headers: { accept: 'application/json' } }).catch(() => ({ status: 0 }))
    if (status === 401) location.assign('/sign-in?failed=ended')
    else setTimeout(listen, 5000)
  })
}
listen()
