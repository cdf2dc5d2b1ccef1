/* Our own version, as opposed to the one of etcd that clients are told. */
#ifndef VIGIL_CMD_VERSION_H
#define VIGIL_CMD_VERSION_H

#define VIGIL_VERSION "0.1.0"
#define VIGIL_DATE "2026-11-15" /* of the manual page */

#endif
