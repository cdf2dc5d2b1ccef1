#include "cmd/serve/signals.h"

#include "base/clock.h"
#include "base/log/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

void signals_block(struct signals *signals)
{
    /* As in etcd, these end the server even if they were ignored by the program that has started
     * it: a shell without job control ignores SIGINT in what it starts in the background. */
    static const int ending[] = {SIGTERM, SIGINT};
    /* These stay ignored, as nohup wants it. */
    static const int others[] = {SIGHUP, SIGUSR1};
    sigemptyset(&signals->set);
    for (size_t i = 0; i < COUNT_OF(ending); i++) {
        signal(ending[i], SIG_DFL);
        sigaddset(&signals->set, ending[i]);
    }
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct sigaction now;
        if (sigaction(others[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(&signals->set, others[i]);
    }
    sigaddset(&signals->set, SIGRTMIN); /* from signals_wake */
    pthread_sigmask(SIG_BLOCK, &signals->set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ,
           SIG_IGN); /* a limit on file sizes then shows as a failed write, which is reported */
}

int signals_wait(const struct signals *signals, int64_t timeout_ns)
{
    struct timespec timeout = {.tv_sec = timeout_ns / NS_PER_S, .tv_nsec = timeout_ns % NS_PER_S};
    for (;;) {
        int number = timeout_ns < 0 ? sigwaitinfo(&signals->set, NULL)
                                    : sigtimedwait(&signals->set, NULL, &timeout);
        if (number > 0)
            return number == SIGRTMIN ? SIGNALS_WOKEN : number;
        if (errno == EAGAIN)
            return 0;
        assert(errno == EINTR);
    }
}

void signals_wake(void)
{
    (void)kill(getpid(), SIGRTMIN);
}

void signals_die_by(const struct signals *signals, int number)
{
    logger_flush(NS_PER_S);
    signal(number, SIG_DFL);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &signals->set, NULL);
    _exit(128 + number);
}

const char *signals_name(int number)
{
    switch (number) {
    case SIGTERM:
        return "terminated";
    case SIGINT:
        return "interrupt";
    case SIGHUP:
        return "hangup";
    default:
        return strsignal(number);
    }
}
