/* Reports the state of the server to the service manager (systemd's Type=notify, which etcd's own
 * units use). Does nothing when NOTIFY_SOCKET is not set. */
#ifndef VIGIL_CMD_SERVE_ANNOUNCE_NOTIFY_H
#define VIGIL_CMD_SERVE_ANNOUNCE_NOTIFY_H

#include <stdint.h>

/* "READY=1", "STOPPING=1". A failure to send is ignored. */
void notify_manager(const char *state);

/* How often the manager expects "WATCHDOG=1" from this process; 0: never. */
int64_t notify_watchdog_ns(void);

#endif
