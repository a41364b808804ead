-- The task that a tree began with, so that what earlier turns of its tasks cost can be added up by tree.
ALTER TABLE spent ADD COLUMN root TEXT;
