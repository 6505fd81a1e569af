-- Reads the JSON part of requests before Triton does, and refuses what ends Triton or makes it allocate without limit.
--
-- The proxy calls `check_json` when it holds that part of the body; a reason to refuse is left in `txn.refusal`.
-- Arguments of `lua-load`: MAX_JSON_DEPTH, MAX_BODY_BYTES.

local max_depth, max_body_bytes = ...
max_depth, max_body_bytes = tonumber(max_depth), tonumber(max_body_bytes)

-- Returns the position after a string's closing quote, and whether it has escapes; nil if it does not end.
local function end_of_string(text, position)
    local escaped = false
    while true do
        local found = text:find('["\\]', position)
        if found == nil then
            return nil
        end
        if text:byte(found) == 34 then
            return found + 1, escaped
        end
        escaped = true
        position = found + 2
    end
end

-- Returns the number of elements of the shape that begins at a position, where extents of zero count as one, so that they
-- hide no others; or nil and what is wrong.
local function elements_of(text, position)
    local list = text:match("^%s*%[([^%]]*)%]", position)
    if list == nil then
        return nil, "'shape' must be a list of integers"
    end
    local elements = 1
    for extent in list:gmatch("[^,%s]+") do
        if not extent:match("^%d+$") then
            return nil, "'shape' must be a list of integers that are not negative"
        end
        -- Compared as text where it is too long for an integer of Lua.
        elements = #extent > 10 and math.huge or elements * math.max(1, tonumber(extent))
        if elements > max_body_bytes then
            return nil, "'shape' has more elements than a request may have bytes"
        end
    end
    return elements
end

-- What is known of an object or array while its end has not been read:
--   name      the key that it is the value of, if any
--   keys      those that an object has
--   elements  of its `shape`, if it has one
--   binary    whether its data follow the JSON part: `parameters` says how many bytes

local function refusal_of_key(text, key, after, frames, depth)
    local frame = frames[depth]
    if frame == nil then
        return "JSON that begins with a string is not a request"
    end
    if frame.keys[key] then
        return "the key '" .. key:gsub("[^%w_]", "?") .. "' is given twice"
    end
    frame.keys[key] = true
    if key == "shape" then
        local elements, wrong = elements_of(text, after)
        if elements == nil then
            return wrong
        end
        frame.elements = elements
    elseif key == "binary_data_size" and frame.name == "parameters" and depth > 1 then
        if not text:match("^%s*%d+%s*[,}]", after) then
            return "'binary_data_size' must be a number of bytes"
        end
        frames[depth - 1].binary = true
    end
    return nil
end

-- Triton allocates for a shape before it looks at the data, so each of its elements must be in the JSON part.
local function refusal_of_end(text, frame)
    if frame.elements == nil or frame.binary then
        return nil
    end
    if frame.elements > #text then
        return "'shape' has more elements than there are data"
    end
    return nil
end

-- Returns the reason to refuse a JSON text, or nil. What is no JSON at all is left to Triton.
local function refusal_of(text)
    local frames, depth, position, name = {}, 0, 1, nil
    while true do
        local found = text:find('["%[%]{}]', position)
        if found == nil then
            return nil
        end
        local character = text:byte(found)
        position = found + 1
        if character == 34 then
            local after, escaped = end_of_string(text, position)
            if after == nil then
                return nil
            end
            local value = text:match("^%s*:()", after)
            name = nil
            if value ~= nil then
                if escaped then
                    return "keys must have no escapes"
                end
                name = text:sub(position, after - 2)
                local refusal = refusal_of_key(text, name, value, frames, depth)
                if refusal ~= nil then
                    return refusal
                end
                after = value
                if not text:match("^%s*[%[{]", after) then
                    name = nil
                end
            end
            position = after
        elseif character == 91 or character == 123 then
            depth = depth + 1
            if depth > max_depth then
                return "arrays and objects are nested deeper than " .. max_depth .. " levels"
            end
            frames[depth] = { name = name, keys = {} }
            name = nil
        else
            name = nil
            if depth == 0 then
                return nil
            end
            local refusal = refusal_of_end(text, frames[depth])
            if refusal ~= nil then
                return refusal
            end
            depth = depth - 1
        end
    end
end

core.register_action("check_json", { "http-req" }, function(transaction)
    local body = transaction.f:req_body()
    local json_bytes = tonumber(transaction:get_var("txn.json_bytes")) or #body
    if json_bytes > #body then
        transaction:set_var("txn.refusal", "the JSON part is longer than the request, or did not arrive in time")
        return
    end
    local refusal = refusal_of(json_bytes < #body and body:sub(1, json_bytes) or body)
    if refusal ~= nil then
        transaction:set_var("txn.refusal", refusal)
    end
end)
