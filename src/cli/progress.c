/* The line of progress, and writing to descriptors. */
#include "cli/progress.h"

#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>

#include "base/str.h"

#define LINE_MAX_BYTES 1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char shown[LINE_MAX_BYTES];

unsigned terminal_width(int fd)
{
    struct winsize size = {0};

    if (!isatty(fd))
        return 0;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool progress_is_shown(void)
{
    return isatty(STDERR_FILENO);
}

int write_all(int fd, const void *data, size_t len)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EAGAIN)
            (void)poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
        else if (n < 0 && errno != EINTR)
            return -errno;
        if (n <= 0)
            continue;
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

static void draw(const char *text)
{
    char line[LINE_MAX_BYTES + 16];

    snprintf(line, sizeof(line), "\r\033[K%s", text);
    (void)write_all(STDERR_FILENO, line, strlen(line));
    snprintf(shown, sizeof(shown), "%s", text);
}

/* At most width bytes, with "..." where something was cut; not inside a character. */
static void cut(char *text, size_t width)
{
    if (strlen(text) <= width)
        return;
    width = width > 3 ? width - 3 : 0;
    while (width > 0 && ((unsigned char)text[width] & 0xc0) == 0x80)
        width--;
    memcpy(text + width, "...", sizeof("...")); /* there were more than that */
}

void progress_set(const char *fmt, ...)
{
    _cleanup_free_ char *text = NULL, *clean = NULL;
    va_list ap;

    if (!progress_is_shown())
        return;
    va_start(ap, fmt);
    text = xvasprintf(fmt, ap);
    va_end(ap);
    clean = str_escape(text, strlen(text), LINE_MAX_BYTES - 1);
    cut(clean, MAX_OF(terminal_width(STDERR_FILENO), 8u) - 1);
    pthread_mutex_lock(&lock);
    if (!str_eq(clean, shown))
        draw(clean);
    pthread_mutex_unlock(&lock);
}

void progress_clear(void)
{
    pthread_mutex_lock(&lock);
    if (shown[0])
        draw("");
    pthread_mutex_unlock(&lock);
}
