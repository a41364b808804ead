-- The rows of tasks with these numbers: their place in the new table.
INSERT INTO tasks_and_ledger
SELECT num, id, context_id, agent, tenant, owner, dialect, created_at, state, status_at, seq, bytes, message_only, stage,
       client_task_id, key, lanes, root, trace, parent, depth, facts, settled_usd, settled_tokens, settled_tasks, reserved_usd,
       reserved_tokens, reserved_tasks, overrun_usd, overrun_tokens, overrun_tasks, settled_at, estimated_by, known_by,
       ifnull(earlier_usd, 0), ifnull(earlier_tokens, 0), ifnull(earlier_tasks, 0), ifnull(earlier_overrun_usd, 0),
       ifnull(earlier_overrun_tokens, 0), ifnull(earlier_overrun_tasks, 0)
FROM tasks LEFT JOIN ledger ON task = num WHERE num BETWEEN ?1 AND ?2 ORDER BY num;
