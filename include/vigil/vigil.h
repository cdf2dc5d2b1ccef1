/* Everything of libvigil. */
#ifndef VIGIL_VIGIL_H
#define VIGIL_VIGIL_H

#include <vigil/auth.h>
#include <vigil/call.h>
#include <vigil/client.h>
#include <vigil/cluster.h>
#include <vigil/concurrency.h>
#include <vigil/kv.h>
#include <vigil/lease.h>
#include <vigil/maintenance.h>
#include <vigil/object.h>
#include <vigil/txn.h>
#include <vigil/types.h>
#include <vigil/watch.h>

#endif
