/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * linkwire.h - what goes over a link, to bytes and back: the messages of the
 * handshake and the headers of frames.
 *
 * Every length and enum is checked. Pure. Integers are little-endian. The first
 * 12 bytes of a handshake message, and the whole of LS_REFUSE, are the same in
 * every major version, so that another one can be refused by name.
 * Source: docs/spec/cluster.md 5.
 */
#ifndef UG_CLUSTER_LINKWIRE_H
#define UG_CLUSTER_LINKWIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/groupmsg.h"

#define LINK_VERSION_MAJOR 1
#define LINK_VERSION_MINOR 0

/* Frames */

#define LINK_FRAME_BYTES 16u

/* A frame that carries no message: I am alive, and have got so far. */
#define LINK_PING 0

/* The highest of enum link_channel. */
#define LINK_CHANNEL_LAST 2

struct link_frame {
	uint32_t len;	 /* of the message that follows */
	uint8_t kind;	 /* LINK_PING or an enum link_channel */
	uint32_t number; /* of this message in its stream, from 1; 0: a ping */
	uint32_t ack;	 /* messages that the sender has got */
};

/* LINK_FRAME_BYTES at head. */
void link_frame_encode(const struct link_frame *frame, uint8_t *head);

/* -EBADMSG: no frame begins so; what was read is in *frame nevertheless. */
int link_frame_decode(const uint8_t *head, struct link_frame *frame);

/* The handshake */

#define LINK_SHAKE_HEAD 12u
#define LINK_SHAKE_MAX 512u
#define LINK_NONCE_BYTES 32u
#define LINK_MAC_BYTES 32u

enum link_shake_type {
	LS_HELLO = 1,	/* connecting side: who I am, whom I look for */
	LS_WELCOME = 2, /* accepting side: the same, and proof of the key */
	LS_PROOF = 3,	/* connecting side: proof of the key */
	LS_READY = 4,	/* accepting side: frames may follow */
	LS_REFUSE = 5,	/* either: why not */
};

enum link_refusal {
	LR_MAJOR = 1,	   /* another major version */
	LR_TABLE = 2,	   /* another lock table */
	LR_OTHER_LIFE = 3, /* the one you look for does not live here */
	LR_STRANGER = 4,   /* you are no member as far as I know */
	LR_KEY_NONE = 5,   /* you have no key, I have one */
	LR_KEY_EXTRA = 6,  /* you have a key, I have none */
	LR_KEY_WRONG = 7,  /* our keys differ */
	LR_STREAM = 8,	   /* what you have and what I have do not fit */
	LR_LATER = 9,	   /* you have sent nonsense; not so soon */
};
#define LR_LAST LR_LATER

struct link_shake {
	enum link_shake_type type;
	uint16_t major;
	uint16_t minor;
	bool keyed; /* the sender has a key */
	/* HELLO, WELCOME */
	struct incarnation from;
	struct incarnation to;
	uint64_t stream; /* this end of this stream; never 0 */
	uint8_t nonce[LINK_NONCE_BYTES];
	char table[LINK_TABLE_MAX + 1];
	/* WELCOME, PROOF */
	uint64_t received;	     /* messages that the sender has got */
	uint8_t mac[LINK_MAC_BYTES]; /* the last bytes of the message */
	/* REFUSE */
	enum link_refusal refusal;
};

/* The length, at most LINK_SHAKE_MAX, which buf must have room for. */
size_t link_shake_encode(const struct link_shake *shake, uint8_t *buf);

/*
 * The length of the message whose LINK_SHAKE_HEAD first bytes these are;
 * -EBADMSG: none begins so.
 */
long link_shake_length(const uint8_t *head);

/*
 * Decode exactly one message. 0; -EPROTONOSUPPORT: of another major version,
 * and only type, major and minor are set; -EBADMSG: nothing is set.
 */
int link_shake_decode(const uint8_t *bytes, size_t len,
		      struct link_shake *shake);

/* Why, in words of the side that refuses, or of the one that is refused. */
const char *link_refusal_text(enum link_refusal refusal, bool refusing);

#endif
