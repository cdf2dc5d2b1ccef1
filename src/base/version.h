/* Vigil's own version; clients see the version of etcd that it emulates. */
#ifndef VIGIL_BASE_VERSION_H
#define VIGIL_BASE_VERSION_H

#define VIGIL_VERSION "0.1.0"
#define VIGIL_DATE "2026-11-15" /* date of the manual page */

#endif
