/* Tells the service manager that started us how far we are (systemd's Type=notify, which etcd's
 * own units use). Does nothing when NOTIFY_SOCKET is not set. */
#ifndef VIGIL_CMD_SERVE_NOTIFY_H
#define VIGIL_CMD_SERVE_NOTIFY_H

#include <stdint.h>

/* "READY=1", "STOPPING=1". What cannot be told is not worth failing for. */
void notify_manager(const char *state);

/* How often the manager wants to hear "WATCHDOG=1" from this process; 0: not at all. */
int64_t notify_watchdog_ns(void);

#endif
