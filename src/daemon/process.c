/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * process.c - the life of a mount process, from the device to its end.
 *
 *   isolate            out of the user's session, nothing inherited
 *   supervisor         with lock_dlm: forked off, stays behind as our parent
 *   control socket     answers from here on
 *   run file           locked before the device is opened
 *   cluster.conf       with lock_dlm: settings that are no mount options
 *   join the cluster   with lock_dlm: a slot, which is the journal's number
 *   /dev/fuse, volume  whatever is missing is found before anything is written
 *   fs_mount           replay
 *   mount(2)           requests queue from here on
 *   serve              "ready" goes to the command that waits
 *   freezer_stop       a frozen volume is waited for to be thawed
 *   fs_unmount         everything on disk
 *   close the volume   before a fuseblk umount(2) returns, and before the run
 *                      file's lock falls with the exit
 *   leave the cluster  when no write of ours can come any more
 *
 * Each step that fails is told in one sentence; tear_down() undoes what has
 * been done, in reverse, and takes what has not as nothing.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "daemon/afterlife.h"
#include "daemon/applocks.h"
#include "daemon/clusterconf.h"
#include "daemon/control_server.h"
#include "daemon/exitcode.h"
#include "daemon/isolate.h"
#include "daemon/membership.h"
#include "daemon/mount_server.h"
#include "daemon/mountinfo.h"
#include "daemon/process.h"
#include "daemon/report.h"
#include "daemon/runfile.h"
#include "daemon/signals.h"
#include "daemon/statistics.h"
#include "daemon/volume.h"
#include "daemon/workers.h"
#include "fuse/conn.h"
#include "fuse/front.h"
#include "fuse/session.h"
#include "ugfs/ugdlm.h"

#define WHY_LEN 512
#define WHO_LEN 64
/* Of cached files: the kernel's 128 KiB halve the rate of large reads. */
#define READAHEAD_KIB 1024u
/*
 * Requests that wait for locks of other nodes hold no thread, but memory; and
 * what those wait for may be a request that we have yet to read.
 */
#define CLUSTERED_REQUESTS_MAX 65536u

struct process {
	const struct mount_request *req;
	int report_fd; /* -1 once the command has been told */
	char who[WHO_LEN];
	bool clustered;		       /* lock_dlm */
	struct gfs2_sb_info sb;	       /* if so, as it was before we began */
	struct plock_settings plocks;  /* with lock_dlm */
	struct membership *membership; /* NULL: lock_nolock, or not joined */
	struct afterlife afterlife;    /* with lock_dlm */
	int exit_err;
	bool opened; /* the file system may have written */
	struct mount_server server;
	struct mount_parts parts;	/* what it looks into */
	struct control_server *control; /* NULL: there is none */
	struct runfile runfile;
	struct volume volume;
	struct fuse_conn *conn;
	struct fs *fs;
	struct workers workers;
	struct fuse_front *front;
	/* For callbacks that may come before there is a session. */
	_Atomic(struct fuse_session *) session;
	struct signals signals;
	bool signals_started;
	bool mounted;
	unsigned major, minor; /* st_dev of the mount */
};

static ug_printf(3, 4) int fail(struct process *p, enum exit_code code,
				const char *fmt, ...)
{
	char text[WHY_LEN];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	report_failed(p->report_fd, code, "%s", text);
	return code;
}

static enum exit_code code_of(int err)
{
	return err == -ENOMEM ? EXIT_SYSTEM : EXIT_MOUNT;
}

/* "cluster:fs" */
static const char *table_of(const struct process *p)
{
	return p->req->opt.locktable ? p->req->opt.locktable : p->sb.locktable;
}

/* Who keeps the volume's locks is looked up before anything else. */
static void find_protocol(struct process *p)
{
	const char *proto = p->req->opt.lockproto;

	if (!volume_peek(p->req->source, &p->sb))
		return;
	p->clustered = !strcmp(proto ? proto : p->sb.lockproto, "lock_dlm");
}

/* The fs part of the lock table, else the last part of the device's name. */
static void set_who(struct process *p)
{
	const char *table = p->clustered ? table_of(p) : p->req->opt.locktable;
	const char *name =
		table ? strrchr(table, ':') : strrchr(p->req->source, '/');

	snprintf(p->who, sizeof(p->who), "%s",
		 name && name[1] ? name + 1 : p->req->source);
}

/* ---- what can be asked over the control socket ---- */

static void show_fs(struct process *p, struct fs *fs)
{
	p->parts.fs = fs;
	mount_server_set(&p->server, &p->parts);
}

static void show_membership(struct process *p, struct membership *m)
{
	p->parts.membership = m;
	mount_server_set(&p->server, &p->parts);
}

static void show_session(struct process *p, struct fuse_session *session)
{
	p->parts.session = session;
	mount_server_set(&p->server, &p->parts);
}

/* By its lock table, if it has one; cut to what a socket's name can hold. */
static void start_control(struct process *p)
{
	const char *table = table_of(p);
	struct control_server_config config = {
		.dir = CONTROL_DIR,
		.kind = MOUNT_KIND,
		.name = table[0] ? table : p->who,
		.verbs = mount_verbs,
		.arg = &p->server,
	};
	char why[WHY_LEN];
	int err = control_server_start(&config, &p->control, why, sizeof(why));

	if (err == -ENAMETOOLONG) {
		config.name = "volume";
		err = control_server_start(&config, &p->control, why,
					   sizeof(why));
	}
	if (err)
		report_note(p->report_fd,
			    "%s: this mount cannot be asked or frozen", why);
}

/* ---- what the file system asks of its host ---- */

static void host_wake(void *arg, enum fs_work work)
{
	struct process *p = arg;

	workers_wake(&p->workers, work);
}

static void host_invalidate(void *arg, uint64_t nodeid, bool data)
{
	struct process *p = arg;
	struct fuse_session *session = atomic_load(&p->session);

	if (session)
		fuse_session_invalidate(session, nodeid, data);
}

/* Before there is a session the kernel knows nothing. */
static void host_recall(void *arg, uint64_t nodeid)
{
	struct process *p = arg;

	if (atomic_load(&p->session))
		fuse_front_recall(p->front, nodeid);
}

static int host_writer(void *arg, uint64_t nodeid, bool exclusive)
{
	struct process *p = arg;

	return fuse_front_writer(p->front, nodeid, exclusive);
}

static void host_writer_gone(void *arg, uint64_t nodeid)
{
	struct process *p = arg;

	fuse_front_writer_gone(p->front, nodeid);
}

static void host_withdrawn(void *arg, const char *why)
{
	struct process *p = arg;

	mount_server_withdrawn(&p->server, why);
	freezer_withdrawn(&p->server.freezer);
	if (p->membership)
		membership_withdrawn(p->membership);
}

static void host_opened(void *arg, struct fs *fs)
{
	struct process *p = arg;

	p->opened = true;
	show_fs(p, fs);
	membership_opened(p->membership, fs);
}

static void host_closing(void *arg)
{
	struct process *p = arg;

	show_fs(p, NULL);
	membership_closing(p->membership);
}

static void host_glock_wake(void *arg)
{
	struct process *p = arg;

	membership_glock_wake(p->membership);
}

static void host_freeze_wanted(void *arg)
{
	struct process *p = arg;

	freezer_wanted(&p->server.freezer);
}

static int host_may_repair(void *arg, char *why, size_t why_len)
{
	struct process *p = arg;

	return membership_may_repair(p->membership, why, why_len);
}

static int host_waits(void *arg, const char *why)
{
	struct process *p = arg;

	return membership_waits(p->membership, why);
}

static const struct fs_host_ops host_ops = {
	.wake = host_wake,
	.withdrawn = host_withdrawn,
	.invalidate = host_invalidate,
	.recall = host_recall,
	.writer = host_writer,
	.writer_gone = host_writer_gone,
	.opened = host_opened,
	.closing = host_closing,
	.glock_wake = host_glock_wake,
	.freeze_wanted = host_freeze_wanted,
	.may_repair = host_may_repair,
	.waits = host_waits,
};

/* An assertion has failed: nothing more may reach the disk. */
static void shut_device(void *arg)
{
	blkdev_shut(arg);
}

/* ---- up ---- */

static void create_runfile(struct process *p)
{
	int err = runfile_create(&p->runfile);

	if (err)
		report_note(p->report_fd,
			    "/run/ugfs cannot be used (%s): umount will not "
			    "wait for the volume to be written",
			    strerror(-err));
}

static int open_fuse(struct process *p)
{
	int err = fuse_conn_open(&p->conn);

	if (!err)
		return EXIT_OK;
	if (err == -ENOENT || err == -ENXIO || err == -ENODEV)
		return fail(p, EXIT_SYSTEM,
			    "/dev/fuse is missing: load the kernel module "
			    "fuse");
	return fail(p, EXIT_SYSTEM, "/dev/fuse: %s", strerror(-err));
}

/* While there is nobody to hear it any more it goes to the log alone. */
static void note_wait(void *arg, const char *text)
{
	struct process *p = arg;

	ug_info(p->who, "%s", text);
	mount_server_waits(&p->server, text);
	if (p->report_fd >= 0)
		report_note(p->report_fd, "%s", text);
}

static void note_conf(void *arg, const char *sentence)
{
	struct process *p = arg;

	ug_warn(p->who, "%s", sentence);
}

static int read_settings(struct process *p)
{
	const char *path = p->req->opt.cluster_conf;
	char why[WHY_LEN];

	p->plocks = p->req->opt.plocks;
	if (!p->clustered)
		return EXIT_OK;
	if (clusterconf_read(path, &p->plocks, note_conf, p, why, sizeof(why)))
		return fail(p, EXIT_USAGE, "%s", why);
	if (p->plocks.value[PLOCKSET_MODE] == PLOCK_MODE_GROUP)
		return fail(p, EXIT_USAGE,
			    "plock_mode=group: this version has only "
			    "plock_mode=direct");
	return EXIT_OK;
}

static int join_cluster(struct process *p)
{
	const struct membership_params params = {
		.table = table_of(p),
		.uuid = p->sb.uuid,
		.who = p->who,
		.key_file = p->req->opt.key_file,
		.startup_delay_sec = p->req->opt.startup_delay_sec,
		.plocks = p->plocks,
		.note = note_wait,
		.interrupted = signals_pending,
		.arg = p,
	};
	char why[WHY_LEN] = "";
	int err;

	if (!p->clustered)
		return EXIT_OK;
	err = membership_join(&params, &p->membership, why, sizeof(why));
	if (!err)
		show_membership(p, p->membership);
	if (err == -EINTR)
		return fail(p, EXIT_INTERRUPTED, "%s", why);
	return err ? fail(p, code_of(err), "%s: lock_dlm: %s", p->req->source,
			  why)
		   : EXIT_OK;
}

static int open_volume(struct process *p)
{
	char why[WHY_LEN];
	int err = volume_open(&p->volume, p->req->source,
			      p->req->opt.fs.spectator, p->clustered, why,
			      sizeof(why));

	if (err)
		return fail(p, code_of(err), "%s", why);
	if (p->clustered && membership_guard(p->membership, &p->volume.dev))
		return fail(p, EXIT_SYSTEM, "out of memory");
	ug_assert_set_hook(shut_device, p->volume.dev);
	if (p->volume.dev->readonly && !p->req->opt.fs.readonly)
		report_note(p->report_fd,
			    "%s is write-protected, mounting it read-only",
			    p->req->source);
	return EXIT_OK;
}

static int fs_mount_failed(struct process *p, int err, const char *why)
{
	char what[WHY_LEN];

	if (err == -EINVAL &&
	    volume_foreign(p->req->source, what, sizeof(what)))
		return fail(p, EXIT_MOUNT, "%s %s, not GFS2", p->req->source,
			    what);
	return fail(p, code_of(err), "%s: %s", p->req->source, why);
}

static int mount_fs(struct process *p)
{
	struct fs_params params = {
		.dev = p->volume.dev,
		.who = p->who,
		.opt = p->req->opt.fs,
		.host = &host_ops,
		.arg = p,
	};
	char why[WHY_LEN] = "";
	int err;

	if (p->membership) {
		params.lockmod = membership_lockmod(p->membership);
		params.opt.jid = membership_slot(p->membership) - 1;
	}
	mount_server_state(&p->server, MOUNT_MOUNTING);
	err = fs_mount(&params, &p->fs, why, sizeof(why));
	if (err == -EINTR)
		return fail(p, EXIT_INTERRUPTED, "%s", why);
	if (err)
		return fs_mount_failed(p, err, why);
	show_fs(p, p->fs);
	if (p->membership)
		membership_mounted(p->membership, p->fs);
	if (signals_pending())
		return fail(p, EXIT_INTERRUPTED, "interrupted");
	if (workers_start(&p->workers, p->fs))
		return fail(p, EXIT_SYSTEM, "no threads can be made");
	return EXIT_OK;
}

static unsigned long mount_flags(const struct process *p)
{
	return p->req->opt.mount_flags |
	       (fs_is_readonly(p->fs) ? MS_RDONLY : 0);
}

/* The number of the new mount, for the others to find it by. */
static void publish(struct process *p)
{
	const char *dir = fuse_conn_mountpoint(p->conn);
	struct mount_query query = { .dir = dir };
	int err = mountinfo_find(&query);

	if (!err && !query.count)
		err = -ENOENT;
	if (!err) {
		p->major = query.top.major;
		p->minor = query.top.minor;
		err = runfile_publish(&p->runfile, p->major, p->minor,
				      p->req->source, dir);
	}
	mount_query_free(&query);
	/* -EBADF: there is no run file, which has been said already. */
	if (err && err != -EBADF)
		report_note(p->report_fd, "/run/ugfs: %s", strerror(-err));
}

static int mount_kernel(struct process *p)
{
	struct fs_statfs st;
	struct fuse_mount_params params = {
		.source = p->req->source,
		.mountpoint = p->req->dir,
		.subtype = "ugfs",
		.blockdev = p->volume.dev->is_blockdev,
		.ms_flags = mount_flags(p),
	};
	char why[WHY_LEN];
	int err;

	fs_statfs(p->fs, &st);
	params.blksize = st.bsize;
	volume_unclaim(&p->volume);
	err = fuse_conn_mount(p->conn, &params, why, sizeof(why));
	if (err)
		return fail(p, code_of(err), "%s", why);
	p->mounted = true;
	publish(p);
	if (strncmp(fuse_conn_type(p->conn), "fuseblk", 7) &&
	    volume_claim(&p->volume, why, sizeof(why)))
		return fail(p, EXIT_MOUNT, "%s", why);
	return EXIT_OK;
}

/* ---- serving ---- */

/* Without it the mount answers ENOTCONN when we have been killed. */
static void leave_connection(struct process *p)
{
	int fd, err;

	if (!p->clustered)
		return;
	err = fuse_conn_clone(p->conn, &fd);
	if (!err)
		err = afterlife_leave(&p->afterlife, fd);
	if (err)
		ug_warn(p->who, "nobody will answer for it: %s",
			strerror(-err));
}

static void on_ready(void *arg)
{
	struct process *p = arg;

	leave_connection(p);
	fuse_conn_set_readahead(p->conn, READAHEAD_KIB);
	mount_server_state(&p->server, MOUNT_SERVING);
	report_ready(p->report_fd);
	close(p->report_fd);
	p->report_fd = -1;
	ug_info(p->who, "mounted %s on %s", p->req->source,
		fuse_conn_mountpoint(p->conn));
}

static bool may_serve(void *arg)
{
	return membership_may_serve(arg);
}

static void await_service(void *arg)
{
	membership_await_service(arg);
}

static void set_policy(struct process *p, struct fuse_front_params *front)
{
	bool own = p->clustered || p->req->opt.page_cache == PAGE_CACHE_OWN;

	fuse_policy_defaults(&front->policy,
			     own ? FUSE_DATA_DIRECT : FUSE_DATA_CACHED);
	front->policy.acl = p->req->opt.fs.acl;
	if (!p->clustered)
		return;
	front->policy.shared = true;
	front->policy.locks = !p->req->opt.localflocks;
	front->locks = applocks_service(membership_applocks(p->membership));
	front->may_serve = may_serve;
	front->await_service = await_service;
	front->arg = p->membership;
}

static int create_session(struct process *p)
{
	struct fuse_front_params front = {
		.fs = p->fs,
		.conn = p->conn,
		.who = p->who,
	};
	struct fuse_session_params params = {
		.conn = p->conn,
		.handler = &fuse_front_handler,
		.who = p->who,
		.ready = on_ready,
		.ready_arg = p,
		.workers_max = p->req->opt.threads,
		.requests_max = p->clustered ? CLUSTERED_REQUESTS_MAX : 0,
	};
	struct fuse_session *session;
	int err;

	set_policy(p, &front);
	err = fuse_front_create(&front, &p->front);
	if (err)
		return fail(p, EXIT_SYSTEM, "%s", strerror(-err));
	params.ctx = p->front;
	if (p->membership)
		applocks_serve(membership_applocks(p->membership), p->front);
	fuse_front_wants(p->front, &params.wants);
	err = fuse_session_create(&params, &session);
	if (err)
		return fail(p, EXIT_SYSTEM, "%s", strerror(-err));
	atomic_store(&p->session, session);
	show_session(p, session);
	if (freezer_start(&p->server.freezer, p->fs, session))
		return fail(p, EXIT_SYSTEM, "no threads can be made");
	return EXIT_OK;
}

/* Until the mount ends. */
static int serve(struct process *p)
{
	int err;

	if (signals_start(&p->signals, p->major, p->minor, p->session))
		return fail(p, EXIT_SYSTEM, "no threads can be made");
	p->signals_started = true;
	err = fuse_session_run(p->session);
	signals_session_over(&p->signals);
	if (p->req->verbose)
		statistics_log(p->who, p->session, p->fs);
	mount_server_state(&p->server, MOUNT_ENDING);
	runfile_set_state(&p->runfile, RUNFILE_ENDING);
	if (p->report_fd >= 0)
		return fail(p, EXIT_MOUNT, "%s: the mount ended early: %s",
			    p->req->dir, strerror(-err));
	if (err)
		ug_warn(p->who, "the mount has ended: %s", strerror(-err));
	return EXIT_OK;
}

/* ---- down ---- */

/*
 * Everything on disk. The device is closed when a fuseblk umount(2) returns,
 * which is when the session is destroyed.
 */
static void close_volume(struct process *p)
{
	int err = 0;

	freezer_stop(&p->server.freezer);
	if (p->fs) {
		workers_stop(&p->workers);
		/* With other nodes host_closing() does it, later. */
		if (p->membership)
			membership_leaving(p->membership);
		else
			show_fs(p, NULL);
		err = fs_unmount(p->fs);
	}
	ug_assert_set_hook(NULL, NULL);
	volume_close(&p->volume);
	if (err)
		ug_error(p->who, "not unmounted cleanly: %s", strerror(-err));
	else if (p->fs)
		ug_info(p->who, "unmounted");
	show_membership(p, NULL);
	if (p->membership) {
		p->exit_err = membership_leave(p->membership,
					       p->fs ? err : p->opened);
		p->membership = NULL;
	}
	runfile_set_state(&p->runfile, err ? RUNFILE_DIRTY : RUNFILE_CLEAN);
}

/*
 * A mount that has never been of use is taken away. Only after the connection
 * has been closed: a fuseblk umount(2) would wait for us.
 */
static void unmount_half(struct process *p)
{
	struct mount_query query = { .dir = p->req->dir };

	if (!mountinfo_find(&query) && query.count &&
	    query.top.major == p->major && query.top.minor == p->minor)
		umount2(p->req->dir, MNT_DETACH | UMOUNT_NOFOLLOW);
	mount_query_free(&query);
}

static void tear_down(struct process *p, bool failed)
{
	struct fuse_session *session = p->session;

	close_volume(p);
	show_session(p, NULL);
	fuse_session_destroy(session);
	fuse_front_destroy(p->front);
	if (p->signals_started)
		signals_stop(&p->signals);
	/* A mount that is still there answers ENOTCONN from here on. */
	fuse_conn_close(p->conn);
	if (failed && p->mounted)
		unmount_half(p);
	workers_fini(&p->workers);
	control_server_stop(p->control);
	mount_server_fini(&p->server);
	runfile_remove(&p->runfile);
}

static int mount_and_serve(struct process *p)
{
	int code = open_fuse(p);

	if (!code)
		code = read_settings(p);
	if (!code)
		code = join_cluster(p);
	if (!code)
		code = open_volume(p);
	if (!code)
		code = mount_fs(p);
	if (!code)
		code = mount_kernel(p);
	if (!code)
		code = create_session(p);
	return code ? code : serve(p);
}

/* The parent stays behind, and ends as we end. */
static int supervise(struct process *p)
{
	struct ugdlm_supervise config = {
		.fence = p->req->opt.fence,
		.fence_action = p->req->opt.fence_action,
		.ended = afterlife_ended,
		.last = afterlife_last,
		.arg = &p->afterlife,
	};
	int err;

	if (!p->clustered)
		return EXIT_OK;
	err = afterlife_open(&p->afterlife);
	if (!err) {
		config.keep_fd = p->afterlife.taken;
		prctl(PR_SET_NAME, "ugfs-super");
		err = ugdlm_supervise(&config);
		prctl(PR_SET_NAME, "ugfs");
	}
	return err ? fail(p, EXIT_SYSTEM, "no supervisor: %s", strerror(-err))
		   : EXIT_OK;
}

int mount_process(const struct mount_request *req, int report_fd)
{
	struct process p = { .req = req, .report_fd = report_fd };
	int code, err;

	workers_init(&p.workers);
	p.volume.claim = -1;
	p.runfile.fd = -1;
	find_protocol(&p);
	set_who(&p);
	mount_server_init(&p.server, p.who, req->source, req->dir);
	err = isolate_process(req->foreground, req->log_path, report_fd);
	if (err)
		return fail(&p, EXIT_SYSTEM, "%s: %s",
			    req->log_path ? req->log_path : "/dev/null",
			    strerror(-err));
	code = supervise(&p);
	if (code)
		return code;
	signals_block();
	isolate_memory(p.who);
	start_control(&p);
	create_runfile(&p);
	code = mount_and_serve(&p);
	tear_down(&p, code != EXIT_OK);
	/* The supervisor takes 0 as our own word that we have left. */
	return code == EXIT_OK && p.exit_err ? EXIT_MOUNT : code;
}
