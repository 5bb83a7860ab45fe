#!/bin/sh
# Ask a worker with curl, and print the message that answers.
#
# AGENTCANVAS_HUB=http://127.0.0.1:7718 AGENTCANVAS_TOKEN=… sh ask.sh sdk-worker "two words"
set -eu

worker=$1 text=$2
messages="$AGENTCANVAS_HUB/api/v1/messages"
task="task-$$-$(date +%s)"
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)

call() {
  curl --silent --show-error --fail-with-body \
    --header "Authorization: Bearer $AGENTCANVAS_TOKEN" "$@"
}

# The receipt comes when the message is on disk: from then on nothing loses it.
call "$messages" --data @- >&2 <<END
{"message_id": "$task-request", "type": "TASK_REQUEST", "from": "curl", "to": "$worker",
 "timestamp": "$now", "payload": {"task_id": "$task", "task_type": "count_words", "input": "$text"}}
END
echo >&2

# Reading takes nothing; "waiting" leaves out what was acknowledged before.
while :; do
  answers=$(call --get "$messages" --data agent_id=curl --data waiting=true --data wait=20 \
    --data limit=1)
  id=$(printf %s "$answers" | sed -n 's/.*"message_id": *"\([^"]*\)".*/\1/p')
  [ -n "$id" ] || continue
  call "$messages/ack" --data "{\"ack\": [\"$id\"]}" >/dev/null
  case $answers in
    *TASK_COMPLETE*"$task"* | *TASK_FAILED*"$task"* | *TASK_REJECT*"$task"* | *'"ERROR"'*)
      printf '%s\n' "$answers"
      exit
      ;;
  esac
done
