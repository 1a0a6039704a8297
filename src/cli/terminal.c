/*
 * Raw mode. Signals that end the process restore the terminal first; SIGTSTP restores it while the
 * process is stopped, SIGCONT makes it raw again. Handlers make async-signal-safe calls only, and
 * wait for no output to be drained (TCSADRAIN): who should read it may be gone.
 */
#include "cli/terminal.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>

static struct termios before, raw;
static volatile sig_atomic_t is_raw;

static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGABRT, SIGSEGV, SIGBUS,
    SIGFPE, SIGILL, SIGXCPU, SIGXFSZ, SIGALRM};

void terminal_restore(void)
{
    if (!is_raw)
        return;
    is_raw = 0;
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void ends(int signo)
{
    terminal_restore();
    (void)signal(signo, SIG_DFL);
    (void)raise(signo);
}

static void stops(int signo)
{
    int saved = errno;

    (void)signo;
    if (is_raw) {
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
        (void)raise(SIGSTOP);
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    } else {
        (void)raise(SIGSTOP);
    }
    errno = saved;
}

static void catch_signal(int signo, void (*handler)(int))
{
    struct sigaction old, action = {.sa_handler = handler};

    /* What the parent had ignored stays ignored (nohup). */
    if (sigaction(signo, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        (void)sigaction(signo, &action, NULL);
}

int terminal_raw(struct err *err)
{
    if (tcgetattr(STDIN_FILENO, &before) < 0)
        return err_sys(err, -errno, "stdin is no terminal");
    raw = before;
    cfmakeraw(&raw);
    for (size_t i = 0; i < ARRAY_LEN(ending); i++)
        catch_signal(ending[i], ends);
    catch_signal(SIGTSTP, stops);
    (void)atexit(terminal_restore);
    is_raw = 1;
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0) {
        is_raw = 0;
        return err_sys(err, -errno, "cannot set the terminal to raw mode");
    }
    return 0;
}

bool terminal_size(int fd, unsigned *ret_rows, unsigned *ret_cols)
{
    struct winsize size = {0};

    if (ioctl(fd, TIOCGWINSZ, &size) < 0 || size.ws_row == 0 || size.ws_col == 0)
        return false;
    *ret_rows = size.ws_row;
    *ret_cols = size.ws_col;
    return true;
}
