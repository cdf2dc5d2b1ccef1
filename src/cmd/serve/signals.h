/*
 * Signals of a server: they are blocked in every thread and waited for by one, so that no handler
 * runs anywhere. SIGTERM, SIGINT and SIGHUP end it, SIGUSR1 opens its log files anew.
 */
#ifndef VIGIL_CMD_SERVE_SIGNALS_H
#define VIGIL_CMD_SERVE_SIGNALS_H

#include <signal.h>
#include <stdint.h>

struct signals {
    sigset_t set;
};

/* Before any thread is started. Those that the parent had ignored (nohup) stay ignored. */
void signals_block(struct signals *signals);
/* The next one, or 0 after so long; timeout_ns < 0: however long it takes. */
int signals_wait(const struct signals *signals, int64_t timeout_ns);
/* Ends the process as if the signal had not been caught. */
_Noreturn void signals_die_by(const struct signals *signals, int number);

/* As Go names them, which is what etcd's log shows: "terminated". */
const char *signals_name(int number);

#endif
