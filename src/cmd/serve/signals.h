/*
 * The signals of a server: they are blocked in every thread and one thread waits for them, so that
 * no handler runs. SIGTERM, SIGINT and SIGHUP end the server, SIGUSR1 reopens its log files.
 */
#ifndef VIGIL_CMD_SERVE_SIGNALS_H
#define VIGIL_CMD_SERVE_SIGNALS_H

#include <signal.h>
#include <stdint.h>

struct signals {
    sigset_t set;
};

/* Before any thread is started. SIGHUP and SIGUSR1 stay ignored if the parent ignored them (nohup).
 */
void signals_block(struct signals *signals);
enum { SIGNALS_WOKEN = -1 };

/* The next signal, 0 after the timeout, or SIGNALS_WOKEN; timeout_ns < 0 waits for ever. */
int signals_wait(const struct signals *signals, int64_t timeout_ns);
/* Any thread: the thread that waits, or waits next, is woken. */
void signals_wake(void);
/* Ends the process as if the signal had not been caught. */
_Noreturn void signals_die_by(const struct signals *signals, int number);

/* As Go names them, which is what etcd's log shows: "terminated". */
const char *signals_name(int number);

#endif
