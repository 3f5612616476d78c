/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clusterconf.h - what cluster.conf says of application locks.
 *
 *	<cluster name="alpha" config_version="7">
 *	  <dlm plock_ownership="1" plock_rate_limit="0"/>
 *	  <gfs_controld plock_rate_limit="0"/>
 *	</cluster>
 *
 * The file belongs to the cluster as a whole, so of other elements it only has
 * to be well-formed. In <dlm> and <gfs_controld> nothing is passed over: an
 * attribute that is not known is refused, since it is one that is misspelt.
 * Any bytes can be given; a document type, which could define entities, is
 * refused. Errors are sentences: "FILE:LINE: found X, expected Y".
 *
 * Ownership: arguments stay the caller's. clusterconf_parse() does no I/O.
 * Source: docs/spec/plocks.md 13; cluster.conf of earlier cluster software.
 */
#ifndef UG_DAEMON_CLUSTERCONF_H
#define UG_DAEMON_CLUSTERCONF_H

#include "daemon/plockset.h"

#define CLUSTERCONF_DEFAULT "/etc/cluster/cluster.conf"
#define CLUSTERCONF_BYTES_MAX (1u << 20)

/*
 * file is its name in sentences. note() hears of elements that are not known,
 * one sentence each; it may be NULL. -EINVAL, -ENOMEM, both with a sentence in
 * why; *set is then unchanged.
 */
int clusterconf_parse(const char *text, size_t len, const char *file,
		      struct plock_settings *set,
		      void (*note)(void *arg, const char *sentence), void *arg,
		      char *why, size_t why_len);

/*
 * The same from a file. path NULL: CLUSTERCONF_DEFAULT, which need not exist;
 * another one must. Also -errno of open() and read(), with a sentence.
 */
int clusterconf_read(const char *path, struct plock_settings *set,
		     void (*note)(void *arg, const char *sentence), void *arg,
		     char *why, size_t why_len);

#endif
