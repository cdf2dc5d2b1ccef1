/* Logs turns of the server's threads (base/metric/turn.h) that took long. */
#ifndef VIGIL_SERVER_TURN_LOG_H
#define VIGIL_SERVER_TURN_LOG_H

#include "base/metric/turn.h"

MUST_CHECK
enum status turn_log_new(struct turns **ret_turns);

#endif
