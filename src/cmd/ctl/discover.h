/*
 * The endpoints of a domain, from its SRV records: those of _etcd-client-ssl._tcp with TLS, and
 * then those of _etcd-client._tcp without.
 */
#ifndef VIGIL_CMD_CTL_DISCOVER_H
#define VIGIL_CMD_CTL_DISCOVER_H

#include "cmd/ctl/ctl.h"

/*
 * With --discovery-srv, globals.discovered becomes the list of the domain's endpoints. Without
 * --insecure-discovery those without TLS are dropped and named on standard error; if none is left,
 * --endpoints is used. Not CTL_OK: the reason was printed.
 */
int ctl_discover(struct ctl *ctl);

#endif
