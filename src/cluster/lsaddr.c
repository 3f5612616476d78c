/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lsaddr.c - where this node listens, and the cluster's secret.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cluster/coroconf.h"
#include "cluster/lockspace.h"

/* A name of corosync's configuration may be an address or a host's name. */
static int resolve(const char *text, struct link_addr *out)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
				  .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;

	if (getaddrinfo(text, NULL, &hints, &found))
		return -EADDRNOTAVAIL;
	memset(out, 0, sizeof(*out));
	if (found->ai_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)found->ai_addr;

		out->family = 4;
		memcpy(out->bytes, &in->sin_addr, 4);
	} else {
		const struct sockaddr_in6 *in = (const void *)found->ai_addr;

		out->family = 6;
		memcpy(out->bytes, &in->sin6_addr, 16);
	}
	freeaddrinfo(found);
	return 0;
}

int ls_own_addr(struct link_addr *out)
{
	struct cluster_node *nodes;
	uint32_t id;
	int count, err = coroconf_own_node(&id);

	if (err)
		return err;
	nodes = calloc(LS_NODES_MAX, sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	err = -EADDRNOTAVAIL;
	count = cluster_nodes(nodes, LS_NODES_MAX);
	for (int i = 0; i < count; i++)
		if (nodes[i].id == id)
			err = resolve(nodes[i].addr, out);
	free(nodes);
	return err;
}

/* A secret that others can read is none. */
static int check_key(int fd, const char *path, char *why, size_t why_len)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_mode & (S_IROTH | S_IWOTH)) {
		ls_say(why, why_len, "key %s: others may read or write it",
		       path);
		return -EPERM;
	}
	if (st.st_size < LINK_KEY_MIN || st.st_size > LINK_KEY_MAX) {
		ls_say(why, why_len, "key %s: %lld bytes, expected %d to %d",
		       path, (long long)st.st_size, LINK_KEY_MIN, LINK_KEY_MAX);
		return -EINVAL;
	}
	return 0;
}

int ls_read_key(const char *path, uint8_t **key, size_t *len, char *why,
		size_t why_len)
{
	int err, fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *bytes;
	ssize_t n;

	if (fd < 0) {
		err = -errno;
		ls_say(why, why_len, "key %s: %s", path, strerror(-err));
		return err;
	}
	bytes = malloc(LINK_KEY_MAX);
	err = bytes ? check_key(fd, path, why, why_len) : -ENOMEM;
	if (!err) {
		n = read(fd, bytes, LINK_KEY_MAX);
		err = n < LINK_KEY_MIN ? -EIO : 0;
	}
	close(fd);
	if (err) {
		free(bytes);
		return err;
	}
	*key = bytes;
	*len = (size_t)n;
	return 0;
}
