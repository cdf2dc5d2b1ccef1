/* Logs turns of the server's threads (base/turn.h) that took long. */
#ifndef VIGIL_SERVER_TURN_LOG_H
#define VIGIL_SERVER_TURN_LOG_H

#include "base/turn.h"

MUST_CHECK
enum status turn_log_new(struct turns **ret_turns);

#endif
