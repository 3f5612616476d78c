/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dlm_echo.h - a bare TCP echo: the yardstick for what a message and its answer
 * cost between two hosts.
 */
#ifndef UG_DAEMON_DLM_ECHO_H
#define UG_DAEMON_DLM_ECHO_H

#include <stdint.h>

#include "daemon/dlm_latency.h"

/* Of a lock request, about. */
#define ECHO_BYTES 96u

/*
 * Serve at this address of our own, on a thread that ends with the process, one
 * connection after the other. 0 and the port, or a negative errno.
 */
int echo_serve(const char *address, uint16_t *port);

/* One message at a time for this long. */
int echo_measure(const char *address, uint16_t port, uint32_t time_ms,
		 struct latency *out, uint64_t *ns);

#endif
