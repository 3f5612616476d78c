#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Would the tests notice? Put one fault at a time into a copy of the lock engine
# and run schedules until one fails; if none does, the stories of
# tests/unit/dlm. Exit 1 if a fault goes unnoticed.
#
#   tests/sim/mutate.sh [RUNS] [NAME|NAME...]   default 3000 schedules, all
#
# A fault is: name, file, the text to replace (once), the new text. A text that
# is no longer in the source is an error: mend the list.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
runs=${1:-3000}
only=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
by_schedules=0 by_stories=0 missed=0
cc=${CC:-gcc}
flags="-std=gnu17 -D_GNU_SOURCE -O2 -g -fno-strict-aliasing"
wrap="-Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc"

mkdir -p "$work/src" "$work/engine" "$work/small" "$work/sim" "$work/stories"
cp -r "$top/src/base" "$top/src/dlm" "$work/src/"

compile() {		# compile SOURCE FOLDER: its object is named after it
	local small=

	case $2 in */small|*/sim) small=-DUG_DLM_SMALL ;; esac
	$cc $flags $small -I"$work/src" -c -o "$2/$(basename "$1" .c).o" "$1"
}

# For the stories, and for the simulator with its small limits
compile_engine() {
	compile "$1" "$work/engine" && compile "$1" "$work/small"
}

for source in "$work"/src/dlm/*.c "$work"/src/base/{assert,log}.c; do
	compile_engine "$source" || exit 2
done
# As tests/sim/meson.build has them: others in that folder are of other simulators.
for source in blocks check client faults journals members nomem run sim world; do
	compile "$top/tests/sim/$source.c" "$work/sim" || exit 2
done
for source in "$top"/tests/unit/dlm/*.c; do
	compile "$source" "$work/stories" || exit 2
done

# limited SECONDS COMMAND: of processor time, so that a busy machine does not
# make a fault of patience; who runs into it is killed.
limited() {
	(
		ulimit -S -t "$1"
		shift
		exec "$@"
	)
}

link_mutant() {
	$cc $flags -o "$work/mutant" "$work"/{small,sim}/*.o $wrap -lpthread
}

# The name of the first of the stories that fails; false: all pass.
failing_story() {
	local test name

	for test in "$work"/stories/test_*.o; do
		name=$(basename "$test" .o)
		$cc $flags -o "$work/$name" "$test" "$work/stories/ring.o" \
			"$work"/engine/*.o -lcmocka -lpthread || exit 2
		limited 60 "$work/$name" >"$work/output" 2>&1 && continue
		echo "$name: $(grep -oE -m1 'FAILED  \] \w+|assertion.*' \
			"$work/output" | cut -c1-60)"
		return 0
	done
	return 1
}

# A fault is noticed only if the engine without it passes.
link_mutant || exit 2
if ! "$work/mutant" --runs "$runs" || failing_story; then
	echo "the engine itself fails"
	exit 2
fi

# What is in $work/src/dlm now: how is it noticed?
judge() {
	local name=$1 found

	found=$(limited 600 "$work/mutant" --runs "$runs" 2>&1)
	case $? in
	0)
		if found=$(failing_story); then
			echo "$name: by $found"
			by_stories=$((by_stories + 1))
		else
			echo "$name: NOT NOTICED in $runs schedules"
			missed=$((missed + 1))
		fi
		;;
	152) # SIGXCPU
		echo "$name: HANGS"
		missed=$((missed + 1))
		;;
	*)
		echo "$name: in $(grep -oE 'seed [0-9]+' <<<"$found" | tail -1): $(
			grep -m1 -E 'FAILED|assert' <<<"$found" | cut -c1-80)"
		by_schedules=$((by_schedules + 1))
		;;
	esac
}

# fault NAME FILE OLD NEW
fault() {
	local name=$1 file=$work/src/dlm/$2 old=$3 new=$4

	[ -z "$only" ] || [[ $name =~ ^($only)$ ]] || return 0
	cp "$file" "$work/saved"
	if ! OLD=$old NEW=$new python3 - "$file" <<-'PY'
		import os, sys
		path = sys.argv[1]
		text = open(path).read()
		old = os.environ["OLD"]
		if text.count(old) < 1:
		    sys.exit(1)
		open(path, "w").write(text.replace(old, os.environ["NEW"], 1))
	PY
	then
		echo "$name: THE TEXT IS NOT in $2"
		missed=$((missed + 1))
	elif ! compile_engine "$file" || ! link_mutant; then
		echo "$name: DOES NOT COMPILE"
		missed=$((missed + 1))
	else
		judge "$name"
	fi
	mv "$work/saved" "$file"
	compile_engine "$file"
}

fault grant-ignores-converting grant.c \
	'conflicts_with_queue(&rsb->granted, lkb) ||
	    conflicts_with_queue(&rsb->convert, lkb))' \
	'conflicts_with_queue(&rsb->granted, lkb))'
fault grant-skips-wait-queue grant.c \
	'return !rsb->convert.first && rsb->waiting.first == lkb;' \
	'return rsb->waiting.first == lkb;'
fault arrival-passes-waiters grant.c \
	'return !rsb->convert.first && !rsb->waiting.first;' \
	'return !rsb->convert.first;'
fault no-grant-after-unlock message.c \
	'	lkb_free(engine, lkb);
	if (rsb->where == RSB_KEEP)
		grant_pass(engine, rsb, false);' \
	'	lkb_free(engine, lkb);'
fault deadlock-undetected grant.c \
	'if (ahead || modes_conflict(other->grmode, lkb->rqmode))' 'if (0)'
fault bast-forgets-cw grant.c \
	'blocked->cw |= lkb->rqmode == LKM_CW;' ''
fault highbast-survives-grant grant.c \
	'	lkb->highbast = LKM_IV;
	lkb_set_status(lkb, LKS_GRANTED);' \
	'	lkb_set_status(lkb, LKS_GRANTED);'
fault ignored-remove-forgotten directory.c \
	'			rsb->flags |= RES_UNPROVED;' '			;'
fault questions-not-counted recover.c \
	'engine->asked_count >= DLM_ASKED_MAX' 'false'
fault remove-of-used-record directory.c \
	'rsb->where != RSB_RECORD || rsb->master != from' \
	'rsb->master != from'
fault remove-not-sent master.c \
	'send_name(engine, rsb, dir, DLM_MSG_REMOVE);' '(void)dir;'
fault directory-node-not-trusted master.c \
	'if (!from_dir && us != dir)' 'if (us != dir)'
fault old-request-of-directory-node-trusted master.c \
	'from == dir && !engine->old_message' 'from == dir'
fault claim-of-the-master-ignored directory.c \
	'correct_master(rsb, engine->config.nodeid, from);' ''
fault told-master-outlives-accepted-request reply.c \
	'if (!rsb_is_master(engine, rsb))
		rsb->master = from;' 'if (!rsb->master)
		rsb->master = from;'
fault unknown-master-not-doubted rebuild.c \
	'if (!rsb_is_master(engine, rsb))
			rsb->flags |= RES_UNPROVED;' \
	'if (rsb->master && !rsb_is_master(engine, rsb))
			rsb->flags |= RES_UNPROVED;'
fault accepted-request-proves-nothing reply.c \
	'rsb->master = from;
	lkb->remid = m->lkid;' 'lkb->remid = m->lkid;'
fault unlock-over-conversion-writes unlock.c \
	'if (lkb->wait_type == DLM_MSG_CONVERT)
		unlock_writes_nothing(lkb);' ''
fault slot-not-held slots.c \
	'if (engine->config.hold_slots && slot)' 'if (0)'
fault slot-of-another-forgotten slots.c \
	'if (is_held(engine, &slots->slot[i]))' 'if (0)'
fault slot-never-freed slots.c \
	'if (!engine->held[i].free)' 'if (1)'
fault slot-news-not-reported slots.c \
	'if (!held || known || held->free)' 'if (1)'
fault lvb-of-dead-writer-trusted lvb.c \
	'		if (rsb->flags & RES_LVB_LOST)
			rsb->flags |= RES_LVB_INVALID;' ''
fault lvb-doubt-lost-with-master lvb.c \
	'donor && !donor_doubts(donor)' 'donor'
fault lvb-newest-copy-trusted lvb.c \
	'donor && !donor_doubts(donor)' '!donor || !donor_doubts(donor)'
fault lvb-not-written-on-unlock grant.c \
	'lvb_on_unlock(engine, lkb);' ''
fault overlap-cancel-forgotten reply.c \
	'else if (overlap && result == -EINPROGRESS)' 'else if (0)'
fault reply-of-a-moot-cancel-taken send.c \
	'if (lkb->wait_type && lkb->wait_type != DLM_MSG_CANCEL)' 'if (0)'
fault resend-not-cleared send.c \
	'	lkb->flags &= ~LKB_RESEND;
	if (--lkb->wait_count > 0)' \
	'	if (--lkb->wait_count > 0)'
fault old-recovery-reply-taken rcom.c \
	'rc->seq_reply != engine->seq || ' ''
fault remaster-not-redone recover.c \
	'(RES_REMASTER | RES_NEW_MASTER)))' 'RES_REMASTER))'
fault leftover-copies-kept rebuild.c \
	'	if (master != engine->config.nodeid)
		drop_all_copies(engine, rsb, 0);' ''
fault copies-of-the-dead-kept rebuild.c \
	'drop_all_copies(engine, rsb, nodeid);' ''
fault copy-of-an-earlier-try-not-found rebuild.c \
	'copies_add(engine, lkb);' ''
fault copies-forgotten-at-a-stop recover.c \
	'	engine->status = 0;
	put_back(engine);' \
	'	engine->status = 0;
	copies_forget(engine);
	put_back(engine);'
fault no-grant-after-recovery recover.c \
	'grant_pass(engine, rsb, true);' '(void)rsb;'
fault conversion-not-repaired rebuild.c \
	'modes[n++] = lkb->rqmode;' ''
fault saved-lookups-kept message.c \
	'if (directory_talk(saved->msg.m.type) ||
		    !is_current' 'if (!is_current'
fault saved-of-the-dead-kept message.c \
	'if (is_current(engine, saved->msg.from, saved->incarnation))
		*error' '*error'
fault parked-forgotten master.c \
	'while (rsb->lookup.first && !rsb->first_lkid)' \
	'if (rsb->lookup.first && !rsb->first_lkid)'
fault reserve-too-late request.c \
	'		error = step_reserve_rsb(engine, rsb);
	if (error)
		return error;
	rsb = master_open(engine, args->name.bytes, args->name.len, hash);' \
	'		error = 0;
	rsb = master_open(engine, args->name.bytes, args->name.len, hash);
	error = step_reserve_rsb(engine, rsb);
	if (error)
		return error;'
echo "noticed by schedules: $by_schedules, by stories: $by_stories," \
	"not noticed: $missed"
[ $missed = 0 ]
